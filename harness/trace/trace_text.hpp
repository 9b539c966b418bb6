// The activity of a traced process, as text.
#pragma once

#include <string>

#include "common/json.hpp"
#include "drivers_patch/summary.hpp"
#include "nic_sim/profile/profile.hpp"

namespace verbscope {

// Rate of the time stamp counter.
struct TickRate {
  double ticks_per_ns = 1;
};
// Computes the rate since the process began. The process must run on this machine.
TickRate tick_rate_since(const driver::Summary& process);

// Omits lines whose figures are 0. `active_s`: the time in which counts rose. `profile`: the cluster whose costs
// findings use; null: no findings.
std::string trace_text(const driver::Summary& process, const TickRate& ticks, double active_s, const Profile* profile);

// The name in libibverbs without IBV_QPT_: "RC". A number if the type has no name.
std::string qp_type_text(ibv_qp_type type);

// Upper bound, in ns, on `share` (0 to 1) of the sampled times: the end of their histogram class. 0 without samples.
double time_below_ns(const driver::Sums& sums, double share, const TickRate& ticks);

// One line per context, and one per kind of difference with an example. Empty without --verify.
std::string verified_text(const driver::Summary& process);

// One object per context: its device, and either why its queue memory is not readable, or the numbers of WQEs compared
// and skipped and the differences by kind.
Json verified_json(const driver::Summary& process);

}  // namespace verbscope
