#include "harness/learn/starts.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace verbscope {
namespace {

constexpr double kSlower = 0.7;          // of a coordinate: a factor of two
constexpr double kUndetermined = 0.25;   // standard deviation of a coordinate
constexpr std::size_t kTriedPlaces = 3;  // with other numbers of units, those that explain the rows best
// An explanation is given up if after its first steps it costs more than the present one times this, and kScanGain.
constexpr double kHopeless = 1.3;
constexpr int kTrialSteps = 2;
constexpr double kNothing = 0.02;  // of a coordinate: less than this from no effect is none

bool gains(const RobustFit& fit, const RobustFit& other, double gain) {
  const double scale = fit.scale();
  return other.cost(scale) < fit.cost(scale) - gain;
}

// Explanations compare with the corrections that each needs itself.
void improve_corrected(RobustFit& fit, int steps) {
  fit.improve(steps);
  if (fit.correct()) fit.improve(steps);
}

// Numbers of units to try instead of this one: one more and one less; `far`: also those within a factor of two that
// adapters usually have, a power of two or three times one.
std::set<int> other_numbers(const FitParameter& parameter, int units, bool far) {
  std::set<int> out{units - 1, units + 1};
  for (int power = 1; far && power <= 2 * units; power *= 2) out.insert({power, 3 * power});
  std::erase_if(out, [&](int n) {
    return n == units || 2 * n < units || n > 2 * units || n < parameter.low || n > parameter.high;
  });
  return out;
}

// A place that a fit may go on from, and its cost there.
struct Place {
  Vector at;
  double cost;
};

Place place_at(const RobustFit& fit, const Vector& at) {
  return {at, fit.cost_at(at, fit.scale())};
}

// Places with another number of units. Where all units limit, rates stay as they are if times change with the number;
// where one unit limits, or waits for work, if times do not: the one of these that explains the rows better. Rows of
// both kinds may share times; then the linearised model knows which ones change.
std::array<Place, 2> with_units(const RobustFit& fit, const Vector& column, std::size_t p, int units) {
  const FitParameter& parameter = fit.parameters()[p];
  const std::vector<double> values = fit.values();
  Vector same_times = fit.coordinates();
  same_times(p) = coordinate(parameter, units);
  Vector same_rates = same_times;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const FitParameter& other = fit.parameters()[i];
    if (other.group != parameter.group || !slows_when_larger(other)) continue;
    same_rates(i) = coordinate(other, std::clamp(values[i] * units / std::round(values[p]), other.low, other.high));
  }
  const double distance = same_times(p) - fit.coordinates()(p);
  const Place one = place_at(fit, same_rates), other = place_at(fit, same_times);
  return {one.cost < other.cost ? one : other, place_at(fit, fit.coordinates() + column / column(p) * distance)};
}

// The fit with other numbers of units, those that explain the rows best. None if many simulations fail.
std::vector<RobustFit> with_other_units(const RobustFit& fit, std::size_t p, bool far) {
  std::vector<Place> places;
  const int now = static_cast<int>(std::round(fit.values()[p]));
  const Vector column = fit.covariance().col(static_cast<Eigen::Index>(p));
  for (const int units : other_numbers(fit.parameters()[p], now, far))
    std::ranges::copy(with_units(fit, column, p, units), std::back_inserter(places));
  std::ranges::sort(places, {}, &Place::cost);
  places.resize(std::min(kTriedPlaces, places.size()));
  std::vector<RobustFit> out;
  for (const Place& place : places) {
    RobustFit other = fit;
    if (other.move_to_similar(place.at)) out.push_back(std::move(other));
  }
  return out;
}

// The value with which the parameter slows nothing down: the whole of a link or the port, or none of a time that the
// known profile does not have. Nothing for other parameters.
std::optional<double> value_without_effect(const FitParameter& parameter) {
  if (is_share(parameter)) return parameter.high;
  return parameter.start == 0 ? std::optional(0.0) : std::nullopt;
}

// The fit without the parameter's effect, held there: a share that does not limit would go back to its start. None if
// the parameter has no effect already, or if many simulations fail.
std::vector<RobustFit> without_effect(const RobustFit& fit, std::size_t p) {
  const std::optional<double> value = value_without_effect(fit.parameters()[p]);
  if (!value) return {};
  Vector at = fit.coordinates();
  at(p) = coordinate(fit.parameters()[p], *value);
  if (std::abs(at(p) - fit.coordinates()(p)) <= kNothing) return {};
  RobustFit out = fit;
  out.hold(p);
  return out.move_to(at) ? std::vector{std::move(out)} : std::vector<RobustFit>{};
}

// Tries other explanations of the rows, and goes on from those that are better.
class Alternatives {
 public:
  Alternatives(RobustFit& fit, int steps) : fit_(fit), steps_(steps) { fit_.correct(); }

  // These return true if an explanation was better.
  bool try_units() {
    bool out = false;
    for (std::size_t p = 0; p < fit_.parameters().size(); ++p) {
      if (!counts_units(fit_.parameters()[p])) continue;
      for (bool far = true; took_best(with_other_units(fit_, p, far)); far = false) out = true;
    }
    return out;
  }
  bool try_fewer_effects() {
    bool out = false;
    for (std::size_t p = 0; p < fit_.parameters().size(); ++p) {
      if (!took_best(without_effect(fit_, p))) continue;
      fit_.release(p);
      out = true;
    }
    return out;
  }

  // The explanations that are worse than the present one.
  const std::vector<RobustFit>& worse() const { return worse_; }

 private:
  // Returns true if the fit went to the best of these explanations.
  bool took_best(std::vector<RobustFit> others) {
    const double scale = fit_.scale(), line = kHopeless * fit_.cost(scale) + kScanGain;
    std::erase_if(others, [&](RobustFit& each) {
      each.correct();
      each.improve(kTrialSteps);
      return each.cost(scale) > line;
    });
    for (RobustFit& each : others) improve_corrected(each, steps_);
    const auto best = std::ranges::min_element(others, {}, [scale](const RobustFit& each) { return each.cost(scale); });
    if (best != others.end() && gains(fit_, *best, kScanGain)) {
      fit_ = std::move(*best);
      worse_.clear();
      return true;
    }
    std::ranges::move(others, std::back_inserter(worse_));
    return false;
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

TriedAlternatives improve_with_alternatives(RobustFit& fit, int steps) {
  Alternatives alternatives(fit, steps);
  const bool other_units = alternatives.try_units(), fewer_effects = alternatives.try_fewer_effects();
  return {.better = other_units || fewer_effects, .worse = alternatives.worse()};
}

}  // namespace verbscope
