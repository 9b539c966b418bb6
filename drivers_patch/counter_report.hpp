// Counts as a report of counters, like the reports of other sources.
#pragma once

#include "common/record.hpp"
#include "drivers_patch/summary.hpp"
#include "wire/cluster_wire.hpp"

namespace verbscope::driver {

// The facts of a cluster profile.
WireFacts facts_of(const ClusterWire& cluster);

// The counts between two readings.
Sums difference(const Sums& end, const Sums& begin);

// "RDMA_WRITE", as in libibverbs without IBV_WR_; a number if it has no name.
std::string opcode_text(std::size_t opcode);
// Counts by opcode, without zeros.
Json by_opcode_json(const std::uint64_t (&counts)[kOpcodes]);

// With the names of common/pcie_events.hpp.
Json events_json(const PcieCounts& counts);

// A report of source "driver", without its node. Its events are those that the driver alone determines. Events that the
// adapter influences are unseen; `extra` has the exact part and the interval of the rest.
CounterReport counter_report(const WireFacts& wire, const Sums& sums, double window_s);

}  // namespace verbscope::driver
