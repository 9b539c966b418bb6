// Causes of a slowdown, found by comparing the counters of two records.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/record.hpp"

namespace verbscope {

// The first cause that the adapters counted clearly more often per operation in `after` than in `before`, as a clause:
// "WQE cache, 0.7 re-reads per operation". Returns nothing if no counter that both records have rose.
std::optional<std::string> adapter_cause(const Record& before, const Record& after);
// Like adapter_cause, then also PCIe reads, PCIe writes and MMIO, which show a cause indirectly.
std::optional<std::string> counted_cause(const Record& before, const Record& after);

// RNR NAKs, losses and congestion that a record's adapters counted often enough to cost throughput.
struct CountedStall {
  std::string cause, unit, counter;  // "congestion", "CNPs sent", "np_cnp_sent"
  double per_op;
  std::string changed_by;  // options that change the cause, as the end of a clause; may be empty
};
std::vector<CountedStall> counted_stalls(const Record& record);

}  // namespace verbscope
