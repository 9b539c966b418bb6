// What was counted, as a report of counters like those of other sources.
#pragma once

#include "common/record.hpp"
#include "drivers_patch/summary.hpp"
#include "wire/cluster_wire.hpp"

namespace verbscope::driver {

// The facts of a cluster's profile.
WireFacts facts_of(const ClusterWire& cluster);

// What was counted between two moments.
Sums difference(const Sums& end, const Sums& begin);

// "RDMA_WRITE", as libibverbs calls it without IBV_WR_; a number where it has no name.
std::string opcode_text(std::size_t opcode);
// Counts by opcode, those that are not 0.
Json by_opcode_json(const std::uint64_t (&counts)[kOpcodes]);

// By the names of common/pcie_events.hpp.
Json events_json(const PcieCounts& counts);

// A report of source "driver", all but its node. Its events are those of which the driver decides alone; where the
// adapter has a say an event is unseen, and `extra` has what the driver knows and the interval of the rest.
CounterReport counter_report(const WireFacts& wire, const Sums& sums, double window_s);

}  // namespace verbscope::driver
