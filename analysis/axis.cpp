#include "analysis/axis.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <string_view>

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

struct Title {
  std::string_view key, words;
};

constexpr std::array kTitles{
    Title{"size", "payload (bytes)"},
    Title{"rate_mops", "rate (Mops)"},
    Title{"adapter_mops", "rate by the adapter's counters (Mops)"},
    Title{"bandwidth_gbit_per_s", "bandwidth (Gb/s)"},
    Title{"bandwidth_mb_per_s", "bandwidth (MB/s)"},
    Title{"lat_mean_ns", "mean latency (ns)"},
    Title{"lat_p50_ns", "median latency (ns)"},
    Title{"lat_p99_ns", "99th percentile of latency (ns)"},
    Title{"extra_reads_per_op", "extra DMA reads per operation (cache lines)"},
    Title{"atomic_slot_wait_ns_per_op", "wait for atomic slots per operation (ns)"},
    Title{"post_list", "work requests per post"},
    Title{"recv_list", "RECVs per post"},
    Title{"inline_size", "largest inline payload (bytes)"},
    Title{"inline_recv", "largest inline receive (bytes)"},
    Title{"region_size", "memory region (bytes)"},
    Title{"stride", "stride (bytes)"},
    Title{"mtu", "path MTU (bytes)"},
    Title{"qp", "QPs per thread"},
    Title{"connections", "connected QPs"},
    Title{"threads", "threads of the server"},
    Title{"clients", "client machines"},
    Title{"client_threads", "threads per client"},
    Title{"window", "outstanding operations per QP"},
    Title{"outstanding", "outstanding requests per client thread"},
    Title{"counters", "counters in memory"},
    Title{"cq_mod", "work requests per signal"},
    Title{"tx_depth", "depth of a send queue (WQEs)"},
    Title{"rx_depth", "depth of a receive queue (WQEs)"},
    Title{"put_percent", "PUTs (%)"},
};

// Unit suffixes of keys, longer ones first.
constexpr std::array kUnits{
    Title{"_gbit_per_s", "Gb/s"},
    Title{"_mb_per_s", "MB/s"},
    Title{"_ns_per_op", "ns per operation"},
    Title{"_per_op", "per operation"},
    Title{"_percent", "%"},
    Title{"_bytes", "bytes"},
    Title{"_mops", "Mops"},
    Title{"_ns", "ns"},
    Title{"_us", "us"},
    Title{"_s", "s"},
};

}  // namespace

double Axis::position_of(double value) const {
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
  const double min = *values.begin(), max = *values.rbegin();
  Axis axis{.low = min, .high = max, .logarithmic = logarithmic, .ticks = {values.begin(), values.end()}};
  if (logarithmic) {
    const double factor = max > min ? std::pow(max / min, kMargin) : 2;
    axis.low /= factor;
    axis.high *= factor;
    return axis;
  }
  const double margin = max > min ? kMargin * (max - min) : std::max(std::abs(max) / 2, 1.0);
  axis.low = min >= 0 ? std::max(0.0, min - margin) : min - margin;
  axis.high += margin;
  return axis;
}

Axis result_axis(double lowest, double highest, bool logarithmic, std::size_t max_ticks) {
  if (logarithmic) {
    Axis axis{
        .low = round_beside(lowest, false), .high = round_beside(highest, true), .logarithmic = true, .ticks = {}};
    if (axis.low == axis.high) axis.high *= 2;
    axis.ticks = logarithmic_ticks(axis.low, axis.high, max_ticks);
    return axis;
  }
  const double low = std::min(lowest, 0.0), high = std::max({highest, 0.0, low == 0 && highest <= 0 ? 1.0 : 0.0});
  const double step = round_beside((high - low) / static_cast<double>(std::max<std::size_t>(max_ticks, 2) - 1), true);
  const double first = std::floor(low / step + 1e-9), last = std::ceil(high / step - 1e-9);
  Axis axis{.low = first * step, .high = last * step, .logarithmic = false, .ticks = {}};
  for (double i = first; i <= last; ++i) axis.ticks.push_back(i * step);
  return axis;
}

std::string tick_text(double value, bool bytes) {
  constexpr double kPlain = 1e7;
  constexpr std::array<std::pair<double, char>, 3> kBinaryUnits = {{{0x1p30, 'G'}, {0x1p20, 'M'}, {0x1p10, 'k'}}};
  if (bytes) {
    for (const auto& [unit, letter] : kBinaryUnits) {
      if (value >= unit && std::fmod(value, unit) == 0) return fmt::format("{:g}{}", value / unit, letter);
    }
  }
  const bool whole = value == std::floor(value) && std::abs(value) < kPlain;
  return whole ? fmt::format("{:.0f}", value) : fmt::format("{:.4g}", value);
}

std::vector<double> ticks_with_room(const Axis& axis, bool bytes, double room) {
  constexpr double kGap = 1;  // letters between two labels
  const auto half = [&](double tick) { return static_cast<double>(tick_text(tick, bytes).size()) / 2; };
  std::vector<double> chosen;
  for (const double tick : axis.ticks) {
    const bool last = tick == axis.ticks.back();
    const auto too_near = [&] {
      return !chosen.empty() && room * (axis.position_of(tick) - axis.position_of(chosen.back())) <
                                    half(tick) + half(chosen.back()) + kGap;
    };
    if (last) {
      while (chosen.size() > 1 && too_near()) chosen.pop_back();
    }
    if (!too_near()) chosen.push_back(tick);
  }
  return chosen;
}

std::string axis_title(const std::string& key) {
  const auto* const known = std::ranges::find(kTitles, key, &Title::key);
  if (known != kTitles.end()) return std::string(known->words);
  const auto* const unit = std::ranges::find_if(kUnits, [&key](const Title& each) { return key.ends_with(each.key); });
  std::string words = unit == kUnits.end() ? key : key.substr(0, key.size() - unit->key.size());
  std::ranges::replace(words, '_', ' ');
  return unit == kUnits.end() ? words : fmt::format("{} ({})", words, unit->words);
}

}  // namespace verbscope
