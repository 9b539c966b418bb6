#include "harness/learn/starts.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

namespace verbscope {
namespace {

constexpr double kSlower = 0.7;         // of a coordinate: a factor of two
constexpr double kUndetermined = 0.25;  // standard deviation of a coordinate
constexpr double kLimited = 0.02;       // of a share's logarithm: less than this from the whole is the whole

bool gains(const RobustFit& fit, const RobustFit& other, double gain) {
  const double scale = fit.scale();
  return other.cost(scale) < fit.cost(scale) - gain;
}

// Explanations compare with the corrections that each needs itself.
void improve_corrected(RobustFit& fit, int steps) {
  fit.improve(steps);
  if (fit.correct()) fit.improve(steps);
}

// The fit with more or fewer units; nothing if the number is out of range, or if many simulations fail. Where units
// limit, rates stay as they are if times change with the number; where units wait for work, if times do not. Starts
// with what explains the rows better.
std::optional<RobustFit> with_units(const RobustFit& fit, std::size_t p, double more) {
  const FitParameter& parameter = fit.parameters()[p];
  const std::vector<double> values = fit.values();
  const double now = std::round(values[p]), units = now + more;
  if (units < parameter.low || units > parameter.high) return std::nullopt;
  Vector same_times = fit.coordinates();
  same_times(p) = coordinate(parameter, units);
  Vector same_rates = same_times;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const FitParameter& other = fit.parameters()[i];
    if (other.group != parameter.group || !slows_when_larger(other)) continue;
    same_rates(i) = coordinate(other, std::clamp(values[i] * units / now, other.low, other.high));
  }
  const double scale = fit.scale();
  RobustFit out = fit;
  const bool possible =
      out.move_to_similar(fit.cost_at(same_rates, scale) < fit.cost_at(same_times, scale) ? same_rates : same_times);
  return possible ? std::optional(std::move(out)) : std::nullopt;
}

// The fit with the whole of a link or the port, held there: a share that does not limit would go back to its start.
// Nothing if the fit has that already, or if many simulations fail.
std::optional<RobustFit> with_whole(const RobustFit& fit, std::size_t p) {
  Vector at = fit.coordinates();
  at(p) = coordinate(fit.parameters()[p], fit.parameters()[p].high);
  RobustFit out = fit;
  out.hold(p);
  return at(p) - fit.coordinates()(p) > kLimited && out.move_to(at) ? std::optional(std::move(out)) : std::nullopt;
}

// Tries other explanations of the rows, and goes on from those that are better.
class Alternatives {
 public:
  Alternatives(RobustFit& fit, int steps) : fit_(fit), steps_(steps) { fit_.correct(); }

  // These return true if an explanation was better.
  bool try_units() {
    bool out = false;
    for (std::size_t p = 0; p < fit_.parameters().size(); ++p) {
      if (counts_units(fit_.parameters()[p]) && (went_on(p, -1) || went_on(p, 1))) out = true;
    }
    return out;
  }
  bool try_whole_shares() {
    bool out = false;
    for (std::size_t p = 0; p < fit_.parameters().size(); ++p) {
      if (!is_share(fit_.parameters()[p]) || !took(with_whole(fit_, p))) continue;
      fit_.release(p);
      out = true;
    }
    return out;
  }

  // The explanations that are worse than the present one.
  const std::vector<RobustFit>& worse() const { return worse_; }

 private:
  // These return true if the fit went to a better explanation.
  bool went_on(std::size_t p, double more) {
    bool out = false;
    while (took(with_units(fit_, p, more))) out = true;
    return out;
  }

  bool took(std::optional<RobustFit> other) {
    if (!other) return false;
    improve_corrected(*other, steps_);
    if (!gains(fit_, *other, kScanGain)) {
      worse_.push_back(std::move(*other));
      return false;
    }
    fit_ = std::move(*other);
    worse_.clear();
    return true;
  }

  RobustFit& fit_;
  int steps_;
  std::vector<RobustFit> worse_;
};

}  // namespace

void improve_from_slower_side(RobustFit& fit, int steps) {
  const Matrix covariance = fit.covariance();
  Vector at = fit.coordinates();
  for (std::size_t p = 0; p < fit.parameters().size(); ++p) {
    const FitParameter& parameter = fit.parameters()[p];
    if (std::sqrt(covariance(p, p)) > kUndetermined && !counts_units(parameter))
      at(p) += slows_when_larger(parameter) ? kSlower : -kSlower;
  }
  RobustFit moved = fit;
  if (!moved.move_to(at)) return;
  improve_corrected(moved, steps);
  if (gains(fit, moved, 0)) fit = std::move(moved);
}

void hold_units(RobustFit& fit) {
  for (std::size_t p = 0; p < fit.parameters().size(); ++p) {
    if (counts_units(fit.parameters()[p])) fit.hold(p);
  }
}

void improve_units(RobustFit& fit, int steps) {
  Alternatives alternatives(fit, steps);
  alternatives.try_units();
}

TriedAlternatives improve_with_alternatives(RobustFit& fit, int steps) {
  Alternatives alternatives(fit, steps);
  const bool other_units = alternatives.try_units(), other_limits = alternatives.try_whole_shares();
  return {.better = other_units || other_limits, .worse = alternatives.worse()};
}

}  // namespace verbscope
