#include "harness/learn/starts.hpp"

#include <cmath>

namespace verbscope {
namespace {

constexpr double kSlower = 0.7;         // of a coordinate: a factor of two
constexpr double kUndetermined = 0.25;  // standard deviation of a coordinate

}  // namespace

void improve_from_slower_side(RobustFit& fit, int steps) {
  const Matrix covariance = fit.covariance();
  Vector at = fit.coordinates();
  for (std::size_t p = 0; p < fit.parameters().size(); ++p) {
    if (std::sqrt(covariance(p, p)) > kUndetermined)
      at(p) += slows_when_larger(fit.parameters()[p]) ? kSlower : -kSlower;
  }
  RobustFit slower = fit;
  if (!slower.move_to(at)) return;
  slower.improve(steps);
  const double scale = fit.scale();
  if (slower.cost(scale) < fit.cost(scale)) fit = std::move(slower);
}

}  // namespace verbscope
