#include "analysis/axis.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

namespace verbscope {
namespace {

constexpr double kMargin = 0.03;  // of the axis, beyond the first and the last value
constexpr std::array kRound = {1.0, 2.0, 5.0};

// Standard deviation of the gaps between ascending numbers, divided by the mean gap.
double unevenness(const std::vector<double>& rising) {
  std::vector<double> gaps(rising.size());
  std::adjacent_difference(rising.begin(), rising.end(), gaps.begin());
  gaps.erase(gaps.begin());
  const double mean = (rising.back() - rising.front()) / static_cast<double>(gaps.size());
  double squares = 0;
  for (const double gap : gaps) squares += (gap - mean) * (gap - mean);
  return std::sqrt(squares / static_cast<double>(gaps.size())) / mean;
}

// Round numbers in a range: 1, 2 and 5 times each power of 10, or only the powers if there are many.
std::vector<double> logarithmic_ticks(double low, double high, std::size_t most) {
  for (const std::size_t each : {kRound.size(), std::size_t{1}}) {
    std::vector<double> ticks;
    for (double power = std::pow(10, std::floor(std::log10(low))); power <= high * (1 + 1e-9); power *= 10) {
      for (std::size_t i = 0; i < each; ++i) {
        const double tick = power * kRound.at(i);
        if (tick >= low * (1 - 1e-9) && tick <= high * (1 + 1e-9)) ticks.push_back(tick);
      }
    }
    if (ticks.size() <= most || each == 1) return ticks;
  }
  return {};
}

// The nearest round number above or below `value`.
double round_beside(double value, bool above) {
  const double power = std::pow(10, std::floor(std::log10(value)));
  double best = above ? 10 * power : power;
  for (const double each : kRound) {
    const double round = each * power;
    if (above ? round >= value * (1 - 1e-9) && round < best : round <= value * (1 + 1e-9) && round > best) best = round;
  }
  return best;
}

}  // namespace

double Axis::place(double value) const {
  if (logarithmic) return std::log(value / low) / std::log(high / low);
  return (value - low) / (high - low);
}

bool is_geometric(const std::set<double>& values) {
  constexpr double kMinFactor = 8;
  if (values.size() < 3 || *values.begin() <= 0 || *values.rbegin() < kMinFactor * *values.begin()) return false;
  const std::vector<double> linear(values.begin(), values.end());
  std::vector<double> logarithms;
  for (const double value : linear) logarithms.push_back(std::log(value));
  return unevenness(logarithms) < unevenness(linear);
}

Axis option_axis(const std::set<double>& values, bool logarithmic) {
  const double least = *values.begin(), most = *values.rbegin();
  Axis axis{.low = least, .high = most, .logarithmic = logarithmic, .ticks = {values.begin(), values.end()}};
  if (logarithmic) {
    const double factor = most > least ? std::pow(most / least, kMargin) : 2;
    axis.low /= factor;
    axis.high *= factor;
    return axis;
  }
  const double margin = most > least ? kMargin * (most - least) : std::max(std::abs(most) / 2, 1.0);
  axis.low = least >= 0 ? std::max(0.0, least - margin) : least - margin;
  axis.high += margin;
  return axis;
}

Axis result_axis(double lowest, double highest, bool logarithmic, std::size_t most_ticks) {
  if (logarithmic) {
    Axis axis{
        .low = round_beside(lowest, false), .high = round_beside(highest, true), .logarithmic = true, .ticks = {}};
    if (axis.low == axis.high) axis.high *= 2;
    axis.ticks = logarithmic_ticks(axis.low, axis.high, most_ticks);
    return axis;
  }
  const double low = std::min(lowest, 0.0), high = std::max({highest, 0.0, low == 0 && highest <= 0 ? 1.0 : 0.0});
  const double step = round_beside((high - low) / static_cast<double>(std::max<std::size_t>(most_ticks, 2) - 1), true);
  const double first = std::floor(low / step + 1e-9), last = std::ceil(high / step - 1e-9);
  Axis axis{.low = first * step, .high = last * step, .logarithmic = false, .ticks = {}};
  for (double i = first; i <= last; ++i) axis.ticks.push_back(i * step);
  return axis;
}

std::string tick_text(double value, bool bytes) {
  constexpr double kPlain = 1e7;
  constexpr std::array<std::pair<double, char>, 3> kUnits = {{{0x1p30, 'G'}, {0x1p20, 'M'}, {0x1p10, 'k'}}};
  if (bytes) {
    for (const auto& [unit, letter] : kUnits) {
      if (value >= unit && std::fmod(value, unit) == 0) return fmt::format("{:g}{}", value / unit, letter);
    }
  }
  const bool whole = value == std::floor(value) && std::abs(value) < kPlain;
  return whole ? fmt::format("{:.0f}", value) : fmt::format("{:.4g}", value);
}

std::vector<double> ticks_with_room(const Axis& axis, bool bytes, double room) {
  constexpr double kGap = 1;  // letters between two labels
  const auto half = [&](double tick) { return static_cast<double>(tick_text(tick, bytes).size()) / 2; };
  std::vector<double> kept;
  for (const double tick : axis.ticks) {
    const bool last = tick == axis.ticks.back();
    const auto too_near = [&] {
      return !kept.empty() &&
             room * (axis.place(tick) - axis.place(kept.back())) < half(tick) + half(kept.back()) + kGap;
    };
    if (last) {
      while (kept.size() > 1 && too_near()) kept.pop_back();
    }
    if (!too_near()) kept.push_back(tick);
  }
  return kept;
}

}  // namespace verbscope
