#include "harness/learn/intervals.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

namespace verbscope {
namespace {

constexpr double kRise95 = 1.96 * 1.96;
// Of the cost: what the last two steps of a search may leave.
constexpr double kUnresolved = 2 * kEnoughGain;
constexpr int kProbes = 3;                 // on each side of a value
constexpr double kBetter = 3;              // decrease of the cost that moves the fit
constexpr int kMoves = 1, kSteps = 6;      // of the fit to better values, and its steps from there
constexpr double kNear = 1.4, kFar = 2.5;  // ratio of the distances of a probe and the next
constexpr double kLeastMove = 0.005;       // of the other coordinates

LearnedInterval interval_of(const FitParameter& parameter, double x, double below, double above) {
  const double value = rounded_value(parameter, value_at_coordinate(parameter, x));
  LearnedInterval out{.low = value_at_coordinate(parameter, x - below),
                      .high = value_at_coordinate(parameter, x + above)};
  if (parameter.integer) {  // the fit sees whole numbers only
    out.low = std::floor(std::min(out.low, value));
    out.high = std::ceil(std::max(out.high, value));
  }
  const bool to_bound = out.low <= parameter.low * 1.001;  // the true value may be below it
  out.identified = !to_bound && out.low > 0 && out.high <= kWidestInterval * out.low;
  return out;
}

// The cost around the values of a fit.
class CostProfile {
 public:
  explicit CostProfile(RobustFit& fit)
      : fit_(fit), scale_(fit.scale()), cost_(fit.cost(scale_)), rise_(kRise95 + kUnresolved * cost_) {
    for (std::size_t p = 0; p < fit.parameters().size(); ++p)
      columns_.push_back(fit.covariance_beside_kinks(p, scale_));
  }

  // The distance of the end of a parameter's interval in the linearised model.
  double linear(std::size_t p) const { return std::sqrt(rise_ * columns_[p](p)); }

  // The distance of the end in this direction, 1 or -1: where the cost has risen by rise_, at least linear().
  double end(std::size_t p, double direction) {
    const FitParameter& parameter = fit_.parameters()[p];
    const double room =
        std::abs(coordinate(parameter, direction > 0 ? parameter.high : parameter.low) - fit_.coordinates()(p));
    double inside = linear(p), at = inside;
    for (int i = 0; i < kProbes && at < room && !better_; ++i) {
      const double rise = rise_at(p, direction * at);
      if (rise >= rise_) return std::max(inside, at * std::sqrt(rise_ / rise));
      inside = at;
      at *= std::clamp(std::sqrt(rise_ / std::max(rise, 1e-3)), kNear, kFar);
    }
    return std::min(at, std::max(room, inside));
  }

  // The distances of the values of the alternative fit that this parameter may have.
  std::optional<std::pair<double, double>> distances(std::size_t p, const RobustFit& other) const {
    const double rise = other.cost(scale_) - cost_;
    if (rise >= rise_) return std::nullopt;
    const double half = linear(p) * std::sqrt(1 - std::max(0.0, rise) / rise_);
    const double middle = other.coordinates()(p) - fit_.coordinates()(p);
    return std::pair(middle - half, middle + half);
  }

  // Coordinates that explain the rows better, if end() met some.
  const std::optional<Vector>& better() const { return better_; }

 private:
  // The others move as the linearised model says, for the smallest rise.
  double rise_at(std::size_t p, double distance) {
    Vector moved = columns_[p] / columns_[p](p) * distance;
    moved = (moved.array().abs() < kLeastMove).select(0, moved);
    const Vector at = fit_.coordinates() + moved;
    const double rise = fit_.cost_at(at, scale_) - cost_;
    if (rise < -kBetter) better_ = at;
    return rise;
  }

  RobustFit& fit_;
  std::vector<Vector> columns_;  // of the covariance, by parameter
  double scale_, cost_;
  double rise_;  // of the cost at the ends of an interval
  std::optional<Vector> better_;
};

}  // namespace

std::vector<LearnedInterval> profile_intervals(RobustFit& fit, const std::vector<RobustFit>& alternatives) {
  for (int move = 0;; ++move) {
    CostProfile profile(fit);
    std::vector<LearnedInterval> out;
    for (std::size_t p = 0; p < fit.parameters().size(); ++p) {
      double below = profile.linear(p), above = below;
      for (const RobustFit& other : alternatives) {
        const auto distances = profile.distances(p, other);
        if (!distances) continue;
        below = std::max(below, -distances->first);
        above = std::max(above, distances->second);
      }
      const auto interval = [&] { return interval_of(fit.parameters()[p], fit.coordinates()(p), below, above); };
      if (interval().identified) below = std::max(below, profile.end(p, -1));
      if (interval().identified) above = std::max(above, profile.end(p, 1));
      out.push_back(interval());
      if (profile.better() && move < kMoves) break;
    }
    if (!profile.better() || move == kMoves) return out;
    if (!fit.move_to(*profile.better())) return out;
    fit.correct();
    fit.improve(kSteps, RobustFit::Until::little_gained_with_fresh_derivatives);
    fit.refresh();
  }
}

}  // namespace verbscope
