#include "analysis/rate_changes.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string_view>

#include "analysis/keys.hpp"
#include "analysis/loads.hpp"
#include "analysis/resource.hpp"
#include "common/stall_counters.hpp"

namespace verbscope {
namespace {

// Smallest significant rise, relative to the earlier count.
constexpr double kMinRise = 0.05;
// RNR NAKs, losses or CNPs per operation that matter. Each holds up a QP for ten microseconds to milliseconds, in which
// an adapter executes thousands of operations.
constexpr double kStallCounts = 1e-4;

struct Counter {
  std::string_view key, cause, unit;
};

// Counters of the simulator's caches.
constexpr std::array kCacheCounters{
    Counter{"wqe_cache_reread_lines", "WQE cache", "re-reads"},
    Counter{"qp_context_misses", "QP-context cache", "misses"},
    Counter{"translation_misses", "translation cache", "misses"},
};
// Events at the machine under test, as keys of result_number.
constexpr std::array kPcieCounters{
    Counter{"dma_read_lines_per_op", "PCIe reads", "cache lines"},
    Counter{"dma_write_full_lines_per_op", "PCIe writes", "full cache lines"},
    Counter{"dma_write_partial_lines_per_op", "PCIe writes", "partial cache lines"},
    Counter{"mmio_wc_lines_per_op", "MMIO", "write-combined lines"},
    Counter{"mmio_doorbells_per_op", "MMIO", "doorbells"},
};

// The sum of a counter over ports and QPs, from a source's counts of the whole interval and from those without
// background ("net"). Counters match by their last word: "port1/hw_counters/np_cnp_sent" is np_cnp_sent.
std::optional<double> counted_by(const CounterReport& report, std::string_view key) {
  std::optional<double> sum;
  const auto add = [&](const Json& values) {
    for (const auto& [name, value] : values.items()) {
      if (value.is_number() && name.substr(name.rfind('/') + 1) == key) sum = sum.value_or(0) + value.get<double>();
    }
  };
  add(report.extra);
  if (const auto net = report.extra.find("net"); net != report.extra.end() && net->is_object()) add(*net);
  return sum;
}

// The sum over all nodes per operation; nothing if no node has the key. If a node has two sources (the kernel's
// counters of a port and of its QPs), the larger value counts.
std::optional<double> counted_by_adapters(const Record& record, std::string_view key) {
  std::map<std::string, double> of_nodes;
  for (const CounterReport& report : record.counters) {
    const double ops = operations_in_window(record.result, report);
    const std::optional<double> count = counted_by(report, key);
    if (!(ops > 0) || !count) continue;
    double& most = of_nodes[report.node];
    most = std::max(most, *count / ops);
  }
  if (of_nodes.empty()) return std::nullopt;
  double sum = 0;
  for (const auto& [node, count] : of_nodes) sum += count;
  return sum;
}

// The options of the resource that has the name of the cause.
std::string changed_by(std::string_view cause) {
  for (const ResourceFacts& each : all_resources()) {
    if (each.words == cause) return fmt::format("; options that change it: --{}", fmt::join(each.options, ", --"));
  }
  return "";
}

// Returns a text if the counter rose. Rises below `least` per operation are noise.
std::optional<std::string> rise(const Counter& counter, double least, const std::optional<double>& before,
                                const std::optional<double>& after) {
  if (!before || !after || *after - *before < std::max(least, kMinRise * *before)) return std::nullopt;
  const std::string than = *before < least ? "" : fmt::format(" instead of {:.2g}", *before);
  return fmt::format("{}, {:.2g} {} per operation{}", counter.cause, *after, counter.unit, than);
}

// The first cause that the adapters counted clearly more often per operation in `after` than in `before`, as a clause:
// "WQE cache, 0.7 re-reads per operation". Returns nothing if no counter that both records have rose.
std::optional<std::string> adapter_cause(const Record& before, const Record& after) {
  const auto rise_of = [&](const Counter& counter, double least) {
    return rise(counter, least, counted_by_adapters(before, counter.key), counted_by_adapters(after, counter.key));
  };
  for (const Counter& counter : kCacheCounters) {
    if (auto cause = rise_of(counter, kRereadCounts)) return cause;
  }
  for (const auto& [name, cause, unit] : kStallCounters) {
    if (auto stall = rise_of({name, cause, unit}, kStallCounts)) return stall;
  }
  return std::nullopt;
}

constexpr double kHighShare = 0.9;  // of the highest rate
constexpr double kDrop = 0.1;       // from one point to the next
constexpr std::size_t kMinKneePoints = 3;

class BendCurve {
 public:
  BendCurve(const std::string& option, const std::vector<BendPoint>& points) : option_(option), points_(points) {}

  std::vector<Bend> bends() const {
    std::vector<Bend> out;
    if (const auto rise = knee_of_rise()) {
      const auto counted = adapter_cause(*points_[*rise - 1].record, *points_[*rise].record);
      const std::string& limit = points_[*rise].limit;
      out.push_back(bend(Bend::Kind::knee, *rise, counted ? limit + "; " + *counted : limit));
    }
    bool fell = false;
    for (std::size_t i = 1; i < points_.size(); ++i) {
      const bool first_of_a_slope = i == 1 || !drops(i - 1);
      if (!drops(i)) continue;
      fell = true;
      if (first_of_a_slope) out.push_back(bend(Bend::Kind::cliff, i, cause(i - 1, i)));
    }
    if (const auto last = fell ? std::nullopt : knee_of_fall()) {
      out.push_back(bend(Bend::Kind::knee, *last, cause(*last, *last + 1)));
    }
    return out;
  }

 private:
  double top() const { return std::ranges::max(points_, {}, &BendPoint::mops).mops; }
  bool is_high(std::size_t i) const { return points_[i].mops >= kHighShare * top(); }

  bool drops(std::size_t i) const {
    const BendPoint &before = points_[i - 1], &here = points_[i];
    const double bytes = option_ == "size" && before.x > 0 ? here.x / before.x : 1;
    return here.mops * std::max(bytes, 1.0) < (1 - kDrop) * before.mops;
  }

  bool has_knees() const { return points_.size() >= kMinKneePoints; }

  // Never the last point: nothing shows that the rate stops rising there.
  std::optional<std::size_t> knee_of_rise() const {
    if (!has_knees()) return std::nullopt;
    std::size_t i = 0;
    while (!is_high(i)) ++i;
    return i > 0 && i + 1 < points_.size() ? std::optional(i) : std::nullopt;
  }

  std::optional<std::size_t> knee_of_fall() const {
    if (!has_knees()) return std::nullopt;
    std::size_t end = points_.size();
    while (!is_high(end - 1)) --end;
    return end < points_.size() ? std::optional(end - 1) : std::nullopt;
  }

  std::string cause(std::size_t before, std::size_t after) const {
    if (const auto counted = adapter_cause(*points_[before].record, *points_[after].record)) return *counted;
    return points_[after].limit;
  }

  Bend bend(Bend::Kind kind, std::size_t i, std::string cause) const {
    const double x = points_[i].x;
    const bool is_plural = option_.ends_with('s');
    const std::string place = option_ == "size" ? fmt::format("{:g} B", x)
                              : is_plural       ? fmt::format("{:g} {}", x, option_)
                                                : fmt::format("{} {:g}", option_, x);
    const char* word = kind == Bend::Kind::knee ? "knee" : "cliff";
    return {kind, i, fmt::format("{} at {}", word, place), std::move(cause)};
  }

  const std::string& option_;
  const std::vector<BendPoint>& points_;
};

}  // namespace

std::optional<std::string> counted_cause(const Record& before, const Record& after) {
  if (auto cause = adapter_cause(before, after)) return cause;
  for (const Counter& counter : kPcieCounters) {
    const std::string key(counter.key);
    if (auto cause = rise(counter, kRereadCounts, result_number(before, key), result_number(after, key))) return cause;
  }
  return std::nullopt;
}

std::vector<CountedStall> counted_stalls(const Record& record) {
  std::vector<CountedStall> stalls;
  for (const auto& [name, cause, unit] : kStallCounters) {
    const double per_op = counted_by_adapters(record, name).value_or(0);
    if (per_op >= kStallCounts)
      stalls.push_back({std::string(cause), std::string(unit), std::string(name), per_op, changed_by(cause)});
  }
  return stalls;
}

std::vector<Bend> bends_along(const std::string& option, const std::vector<BendPoint>& points) {
  const bool are_rates = std::ranges::all_of(points, [](const BendPoint& point) { return point.mops > 0; });
  if (!are_rates) return {};
  return BendCurve(option, points).bends();
}

}  // namespace verbscope
