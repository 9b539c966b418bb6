#include "harness/learn/intervals.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

namespace verbscope {
namespace {

constexpr double kNormal95 = 1.96, kRise95 = kNormal95 * kNormal95;
constexpr int kProbes = 3;                 // on each side of a value
constexpr double kFarRise = 4;             // of kRise95: a step of the other parameters cannot undo it
constexpr double kBetter = 3;              // decrease of the cost that moves the fit
constexpr int kMoves = 2, kSteps = 4;      // of the fit to better values, and its steps from there
constexpr double kNear = 1.4, kFar = 2.5;  // ratio of the distances of a probe and the next

LearnedInterval interval_of(const FitParameter& parameter, double x, double below, double above) {
  const double value = rounded_value(parameter, value_at_coordinate(parameter, x));
  LearnedInterval out{.low = value_at_coordinate(parameter, x - below),
                      .high = value_at_coordinate(parameter, x + above)};
  if (parameter.integer) {  // the fit sees whole numbers only
    out.low = std::floor(std::min(out.low, value));
    out.high = std::ceil(std::max(out.high, value));
  }
  const bool at_bound = out.low <= parameter.low * 1.001 && value <= parameter.low * 1.001;
  out.identified = !at_bound && out.low > 0 && out.high <= kWidestInterval * out.low;
  return out;
}

// The cost around the values of a fit.
class CostProfile {
 public:
  explicit CostProfile(const RobustFit& fit)
      : fit_(fit), covariance_(fit.covariance()), scale_(fit.scale()), cost_(fit.cost(scale_)) {}

  // The distance of the end of a parameter's interval in the linearised model.
  double linear(std::size_t p) const { return kNormal95 * std::sqrt(covariance_(p, p)); }

  // The distance of the end in this direction, 1 or -1: where the cost has risen by kRise95, at least linear().
  double end(std::size_t p, double direction) {
    const FitParameter& parameter = fit_.parameters()[p];
    const double room =
        std::abs(coordinate(parameter, direction > 0 ? parameter.high : parameter.low) - fit_.coordinates()(p));
    double inside = linear(p), at = inside;
    for (int i = 0; i < kProbes && at < room && !better_; ++i) {
      const double rise = rise_at(p, direction * at);
      if (rise >= kRise95) return std::max(inside, at * std::sqrt(kRise95 / rise));
      inside = at;
      at *= std::clamp(std::sqrt(kRise95 / std::max(rise, 1e-3)), kNear, kFar);
    }
    return std::min(at, std::max(room, inside));
  }

  // A fit at values that explain the rows better, if end() met some.
  std::optional<RobustFit>& better() { return better_; }

 private:
  double rise_at(std::size_t p, double distance) {
    RobustFit probe = fit_;
    const Vector at = fit_.coordinates() + covariance_.col(p) / covariance_(p, p) * distance;
    if (!probe.move_to(at)) return std::numeric_limits<double>::infinity();
    double rise = probe.cost(scale_) - cost_;
    if (rise >= kRise95 && rise < kFarRise * kRise95) {
      probe.hold(p);
      probe.improve(1);
      probe.hold(std::nullopt);
      rise = probe.cost(scale_) - cost_;
    }
    if (rise < -kBetter) better_ = std::move(probe);
    return rise;
  }

  const RobustFit& fit_;
  Matrix covariance_;
  double scale_, cost_;
  std::optional<RobustFit> better_;
};

}  // namespace

std::vector<LearnedInterval> profile_intervals(RobustFit& fit) {
  for (int move = 0;; ++move) {
    CostProfile profile(fit);
    std::vector<LearnedInterval> out;
    for (std::size_t p = 0; p < fit.parameters().size(); ++p) {
      const FitParameter& parameter = fit.parameters()[p];
      const double x = fit.coordinates()(p), linear = profile.linear(p);
      out.push_back(interval_of(parameter, x, linear, linear));
      if (!out.back().identified) continue;
      const double below = profile.end(p, -1);
      out.back() = interval_of(parameter, x, below, linear);
      if (out.back().identified) out.back() = interval_of(parameter, x, below, profile.end(p, 1));
      if (profile.better() && move < kMoves) break;
    }
    if (!profile.better() || move == kMoves) return out;
    fit = std::move(*profile.better());
    fit.improve(kSteps);
    fit.refresh();
  }
}

}  // namespace verbscope
