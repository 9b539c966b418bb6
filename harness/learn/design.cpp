#include "harness/learn/design.hpp"

#include <algorithm>
#include <cmath>

namespace verbscope {
namespace {

constexpr double kLeastGain = 0.02;

// The expected decrease of the logarithms of the variances of `of`, if a row with these derivatives is measured.
double gain_of(const Matrix& covariance, const Vector& row, double variance, const std::vector<std::size_t>& of) {
  const Vector moved = covariance * row;
  const double total = variance + row.dot(moved);
  double gain = 0;
  for (const std::size_t p : of) gain -= std::log1p(-std::min(0.999, moved(p) * moved(p) / (total * covariance(p, p))));
  return gain;
}

// The covariance after the row is measured (Sherman and Morrison).
Matrix after(Matrix covariance, const Vector& row, double variance) {
  const Vector moved = covariance * row;
  covariance -= moved * moved.transpose() / (variance + row.dot(moved));
  return covariance;
}

}  // namespace

std::vector<std::size_t> uncertain_parameters(const RobustFit& fit, const Matrix& covariance) {
  std::vector<std::size_t> out;
  for (std::size_t p = 0; p < fit.parameters().size(); ++p) {
    if (covariance(p, p) > kKnownWell * kKnownWell) out.push_back(p);
  }
  return out;
}

std::vector<std::size_t> best_rows(const RobustFit& fit, const std::vector<std::size_t>& candidates,
                                   const std::vector<std::size_t>& uncertain, std::size_t count) {
  Matrix covariance = fit.covariance();
  const double variance = fit.scale() * fit.scale();
  std::vector<std::size_t> left = candidates, out;
  while (out.size() < count && !left.empty()) {
    std::size_t best = 0;
    double best_gain = 0;
    for (std::size_t i = 0; i < left.size(); ++i) {
      const double gain = gain_of(covariance, fit.derivatives(left[i]), variance, uncertain);
      if (gain > best_gain) std::tie(best, best_gain) = std::pair(i, gain);
    }
    if (best_gain < kLeastGain) break;
    covariance = after(std::move(covariance), fit.derivatives(left[best]), variance);
    out.push_back(left[best]);
    left.erase(left.begin() + static_cast<std::ptrdiff_t>(best));
  }
  return out;
}

}  // namespace verbscope
