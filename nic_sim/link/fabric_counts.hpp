// The fabric's counts of a node: running totals, of which takers form differences.
#pragma once

#include <cstdint>

namespace verbscope {

struct FabricCounts {
  std::uint64_t messages_sent = 0;      // whose last packet has left the port; each first time only
  std::uint64_t dropped_by_switch = 0;  // packets towards this node that the switch lost
  std::uint64_t credit_waits = 0;       // packets that waited at their port while the switch held others of it
};

}  // namespace verbscope
