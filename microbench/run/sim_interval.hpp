// The measured interval of a simulated cluster: the counts of all its nodes, read at the same virtual times.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/record.hpp"
#include "drivers_patch/summary.hpp"
#include "microbench/bench/benchmark.hpp"
#include "microbench/run/call_counter.hpp"
#include "microbench/run/report.hpp"
#include "nic_sim/cluster.hpp"
#include "nic_sim/node_counts.hpp"
#include "nic_sim/profile/profile.hpp"

namespace verbscope {

class SimInterval {
 public:
  // How often the threads of a node have armed their completion queues so far.
  using Armed = std::function<std::uint64_t(std::size_t node)>;

  // `names`: of the nodes, in records. The cluster must outlive the interval.
  SimInterval(const SimCluster& cluster, std::vector<std::string> names, Armed armed)
      : cluster_(cluster), names_(std::move(names)), armed_(std::move(armed)) {}

  void begin() { begin_ = counts(); }
  void end() { end_ = counts(); }
  // Reads a missing begin or end now: the run failed before it.
  void close() {
    if (begin_.nodes.empty()) begin();
    if (end_.nodes.empty() || end_.time < begin_.time) end();
  }

  // After the end.
  // Million operations per second, by a counter of the adapters of one side.
  double counted_mops(const OperationCount& counter) const;
  // True if misses of the adapters' caches of address translations will not change the rate any more: they are rare, or
  // no busy unit waits for them, or the entries of the filled caches have been replaced.
  bool translations_settled() const;
  // Reasons for a rate that is not steady or missing: RNR NAKs of the interval, packets that the run had to send again;
  // empty if there are none.
  std::string disturbances() const;
  IntervalUse use(std::size_t node) const;
  CounterReport counters(std::size_t node, const Profile& profile) const;
  // The same for the calls of the node's program. The cluster must be idle.
  CounterReport driver_counters(std::size_t node, const CallCounter& counter) const;

 private:
  struct Moment {
    Picos time{0};
    std::vector<NodeCounts> nodes;
    std::vector<std::uint64_t> armed;  // by node
    driver::Summary driver{};          // if it counts
  };

  Moment counts() const;

  const SimCluster& cluster_;
  const std::vector<std::string> names_;
  const Armed armed_;
  Moment begin_, end_;
};

}  // namespace verbscope
