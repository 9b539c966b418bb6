// All counts of a node of a simulated cluster at one moment, and what they tell of the interval between two.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/record.hpp"
#include "nic_sim/cluster.hpp"
#include "nic_sim/profile/profile.hpp"

namespace verbscope {

// Totals since the start.
struct NodeCounts {
  PcieCounts pcie;
  NicCounts nic;
  std::optional<EthernetCounts> ethernet;
  std::uint64_t deepest_queue = 0;
  UsageTimes usage;
  Picos busy{0};  // CPU time of its threads
};
NodeCounts node_counts(const SimCluster& cluster, int node);

// The largest share of `time` in which units worked or waited: all requester units, all responder units, or the units
// of one QP.
double use_of_units(const NodeCounts& begun, const NodeCounts& ended, Picos time);

// The counters of an interval of length `time`, as records have them. `name`: of the node.
CounterReport counter_report(const NodeCounts& begin, const NodeCounts& end, Picos time, const std::string& name,
                             const Profile& profile);

}  // namespace verbscope
