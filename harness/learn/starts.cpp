#include "harness/learn/starts.hpp"

#include <cmath>
#include <optional>
#include <utility>

namespace verbscope {
namespace {

constexpr double kSlower = 0.7;         // of a coordinate: a factor of two
constexpr double kUndetermined = 0.25;  // standard deviation of a coordinate

// Improves a copy of the fit from these coordinates, with the parameter `held` where it is there. Keeps the copy and
// returns true if that gains more than `gain` of the cost.
bool improve_from(RobustFit& fit, const Vector& at, int steps, double gain, std::optional<std::size_t> held = {}) {
  RobustFit other = fit;
  if (held) {
    const double value = value_at_coordinate(fit.parameters()[*held], at(*held));
    other.set_range(*held, value, value);
  }
  if (!other.move_to(at)) return false;
  other.improve(steps);
  if (held) other.set_range(*held, fit.parameters()[*held].low, fit.parameters()[*held].high);
  const double scale = fit.scale();
  if (!(other.cost(scale) < fit.cost(scale) - gain)) return false;
  fit = std::move(other);
  return true;
}

// Another number of units, while the other parameters follow.
bool improve_with_units(RobustFit& fit, std::size_t p, double units, int steps) {
  const FitParameter& parameter = fit.parameters()[p];
  if (units < parameter.low || units > parameter.high) return false;
  Vector at = fit.coordinates();
  at(p) = coordinate(parameter, units);
  return improve_from(fit, at, steps, kScanGain, p);
}

}  // namespace

void improve_from_slower_side(RobustFit& fit, int steps) {
  const Matrix covariance = fit.covariance();
  Vector at = fit.coordinates();
  for (std::size_t p = 0; p < fit.parameters().size(); ++p) {
    if (std::sqrt(covariance(p, p)) > kUndetermined)
      at(p) += slows_when_larger(fit.parameters()[p]) ? kSlower : -kSlower;
  }
  improve_from(fit, at, steps, 0);
}

void improve_with_other_units(RobustFit& fit, int steps) {
  for (std::size_t p = 0; p < fit.parameters().size(); ++p) {
    if (!counts_units(fit.parameters()[p])) continue;
    const double first = std::round(fit.values()[p]);
    for (const double side : {-1.0, 1.0}) {
      double units = first;
      while (improve_with_units(fit, p, units + side, steps)) units += side;
      if (units != first) break;
    }
  }
}

}  // namespace verbscope
