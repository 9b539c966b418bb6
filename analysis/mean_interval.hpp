// Mean of repetitions with its confidence interval.
#pragma once

#include <cstddef>
#include <vector>

namespace verbscope {

// Confidence of all intervals in figures.
inline constexpr double kFigureConfidence = 0.95;

struct MeanInterval {
  double mean = 0;
  double low = 0, high = 0;  // at kFigureConfidence, by Student's t; for a single value both equal it
  std::size_t count = 0;
};

// Precondition: `values` is not empty.
MeanInterval mean_interval(const std::vector<double>& values);

// Half the width of the confidence interval of a mean, in standard errors. `freedom`: degrees of freedom of the sample.
double interval_factor(std::size_t freedom);

}  // namespace verbscope
