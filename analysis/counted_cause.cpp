#include "analysis/counted_cause.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <string_view>

#include "analysis/keys.hpp"
#include "analysis/loads.hpp"
#include "analysis/points.hpp"
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
constexpr std::array kOfCaches{
    Counter{"wqe_cache_reread_lines", "WQE cache", "re-reads"},
    Counter{"qp_context_misses", "QP-context cache", "misses"},
    Counter{"translation_misses", "translation cache", "misses"},
};
// Events at the machine under test, as keys of result_number.
constexpr std::array kOfPcie{
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

}  // namespace

std::optional<std::string> adapter_cause(const Record& before, const Record& after) {
  const auto rise_of = [&](const Counter& counter, double least) {
    return rise(counter, least, counted_by_adapters(before, counter.key), counted_by_adapters(after, counter.key));
  };
  for (const Counter& counter : kOfCaches) {
    if (auto cause = rise_of(counter, kRereadCounts)) return cause;
  }
  for (const auto& [name, cause, unit] : kStallCounters) {
    if (auto stall = rise_of({name, cause, unit}, kStallCounts)) return stall;
  }
  return std::nullopt;
}

std::optional<std::string> counted_cause(const Record& before, const Record& after) {
  if (auto cause = adapter_cause(before, after)) return cause;
  for (const Counter& counter : kOfPcie) {
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

}  // namespace verbscope
