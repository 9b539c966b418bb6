// The mean of repetitions, and how sure it is.
#pragma once

#include <cstddef>
#include <vector>

namespace verbscope {

// The confidence of every interval that a figure has.
inline constexpr double kFigureConfidence = 0.95;

struct MeanInterval {
  double mean = 0;
  double low = 0, high = 0;  // of kFigureConfidence, by Student's t; of one value: that value
  std::size_t count = 0;
};

// `values` has one or more.
MeanInterval mean_interval(const std::vector<double>& values);

// Half the width of the interval of a mean in standard errors, of a sample with so many degrees of freedom.
double interval_factor(std::size_t freedom);

}  // namespace verbscope
