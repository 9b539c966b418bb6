#include "harness/evidence/error_figures.hpp"

#include <algorithm>
#include <cmath>

namespace verbscope {

double median(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

ErrorFigures error_figures(const std::vector<double>& errors_percent) {
  ErrorFigures figures{.rows = errors_percent.size()};
  if (errors_percent.empty()) return figures;
  std::vector<double> sizes;
  for (const double error : errors_percent) sizes.push_back(std::abs(error));
  figures.worst_at = static_cast<std::size_t>(std::ranges::max_element(sizes) - sizes.begin());
  figures.worst = sizes[figures.worst_at];
  figures.median = median(sizes);
  std::ranges::sort(sizes);
  figures.percentile_90 = sizes[(sizes.size() * 9 + 9) / 10 - 1];
  return figures;
}

}  // namespace verbscope
