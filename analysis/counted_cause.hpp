// What the counters of two records say about why the second one is slower.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/record.hpp"

namespace verbscope {

// The first cause, in one clause, of which the adapters counted clearly more per operation in `after` than in `before`:
// "WQE cache, 0.7 re-reads per operation"; none where nothing that was counted on both sides rose.
std::optional<std::string> adapter_cause(const Record& before, const Record& after);
// The same, else what shows a cause: reads, writes and MMIO over PCIe.
std::optional<std::string> counted_cause(const Record& before, const Record& after);

// RNR NAKs, losses and congestion that the adapters of a record counted often enough to cost something.
struct CountedStall {
  std::string cause, unit, counter;  // "congestion", "CNPs sent", "np_cnp_sent"
  double per_op;
  std::string changed_by;  // options that change the cause, as the end of a clause; empty where none are known
};
std::vector<CountedStall> counted_stalls(const Record& record);

}  // namespace verbscope
