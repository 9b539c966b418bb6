// The measured window of a simulated cluster: one for all its nodes, whose counts are read at the same virtual moments.
#pragma once

#include <deque>
#include <optional>
#include <vector>

#include "common/record.hpp"
#include "drivers_patch/summary.hpp"
#include "microbench/run/counted_provider.hpp"
#include "microbench/run/node_run.hpp"
#include "nic_sim/cluster.hpp"
#include "nic_sim/profile/profile.hpp"

namespace verbscope {

class SimWindow {
 public:
  // Node i of the cluster runs nodes[i]. Both must outlive the window.
  SimWindow(const SimCluster& cluster, const std::deque<NodeRun>& nodes) : cluster_(cluster), nodes_(nodes) {}

  void begin() { begin_ = counts(); }
  void end() { end_ = counts(); }
  // Where the run failed before it began or ended: now.
  void close() {
    if (begin_.nodes.empty()) begin();
    if (end_.nodes.empty() || end_.time < begin_.time) end();
  }

  // After the end.
  // Operations in a second, by a counter of the adapters of one side.
  double counted_mops(const OperationCount& counter) const;
  // Whether the rate is that of adapters whose caches of address translations miss as often as they will after a long
  // time: they hardly ever miss, or seldom and no unit that waits for it is short of time; or they were filled, and
  // what they held then has left for others.
  bool translations_settled() const;
  // Reasons for a rate that is not steady or not there: the RNR NAKs of the window, and the packets that the run had to
  // send again; empty where there were none.
  std::string disturbances() const;
  WindowUse use(std::size_t node) const;
  CounterReport counters(std::size_t node, const Profile& profile) const;
  // The same of what the node's program posted and polled; the cluster has come to rest.
  CounterReport driver_counters(std::size_t node, const CountedProvider& provider) const;

 private:
  struct NodeCounts {
    PcieCounts pcie;
    NicCounts nic;
    std::optional<EthernetCounts> ethernet;
    std::uint64_t deepest_queue = 0;
    UsageTimes usage;
    Picos busy{0};  // CPU time of its threads
    std::uint64_t armed = 0;
  };
  struct Moment {
    Picos time{0};
    std::vector<NodeCounts> nodes;
    driver::Summary driver{};  // where it counts
  };

  Moment counts() const;

  const SimCluster& cluster_;
  const std::deque<NodeRun>& nodes_;
  Moment begin_, end_;
};

}  // namespace verbscope
