// Adapter counters that show why QPs are stalled, with the names used by drivers and the simulator.
#pragma once

#include <span>
#include <string_view>

namespace verbscope {

struct StallCounter {
  std::string_view name;   // "rnr_nak_retry_err"
  std::string_view cause;  // "too few RECVs"
  std::string_view unit;   // "RNR NAKs"
};

// Grouped by cause.
std::span<const StallCounter> stall_counters();

}  // namespace verbscope
