#include "analysis/mean_interval.hpp"

#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <numeric>

namespace verbscope {

MeanInterval mean_interval(const std::vector<double>& values) {
  const double n = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  if (values.size() == 1) return {.mean = mean, .low = mean, .high = mean, .count = 1};
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  const double reach = interval_factor(values.size() - 1) * std::sqrt(squares / (n - 1) / n);
  return {.mean = mean, .low = mean - reach, .high = mean + reach, .count = values.size()};
}

double interval_factor(std::size_t freedom) {
  return boost::math::quantile(boost::math::students_t(static_cast<double>(freedom)), (1 + kFigureConfidence) / 2);
}

}  // namespace verbscope
