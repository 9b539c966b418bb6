// Counters of adapters that tell why QPs stand still, by the names that drivers and the simulator give them.
#pragma once

#include <span>
#include <string_view>

namespace verbscope {

struct StallCounter {
  std::string_view name;   // "rnr_nak_retry_err"
  std::string_view cause;  // "too few RECVs"
  std::string_view unit;   // "RNR NAKs"
};

// Those of one cause in a row.
std::span<const StallCounter> stall_counters();

}  // namespace verbscope
