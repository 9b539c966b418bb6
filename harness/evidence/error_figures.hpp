// Errors of many rows as three figures.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace verbscope {

// The middle value, or the mean of the two in the middle. `values` has some.
double median(std::vector<double> values);

// Sizes of errors in percent, however signed. All are 0 without errors.
struct ErrorFigures {
  std::size_t rows = 0;
  double median = 0, percentile_90 = 0, worst = 0;  // the 90th percentile by nearest rank
  std::size_t worst_at = 0;                         // place of the worst among the errors
};
ErrorFigures error_figures(const std::vector<double>& errors_percent);

}  // namespace verbscope
