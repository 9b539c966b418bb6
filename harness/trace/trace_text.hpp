// What a traced process did, for the person.
#pragma once

#include <string>

#include "drivers_patch/summary.hpp"
#include "nic_sim/profile/profile.hpp"

namespace verbscope {

// Times of a counter's ticks, by two clocks that the process read at its beginning and somebody reads now.
struct TickRate {
  double ticks_per_ns = 1;
};
// Of the processes of this machine.
TickRate tick_rate_since(const driver::Summary& process);

// Lines without figures of 0; `active_s`: the time in which its counts rose. `profile`: the cluster that findings are
// reckoned for; null: there are none.
std::string trace_text(const driver::Summary& process, const TickRate& ticks, double active_s, const Profile* profile);

// "RC", as libibverbs calls it without IBV_QPT_; a number where it has no name.
std::string qp_type_text(ibv_qp_type type);

// The class of which `share` (0 to 1) of the samples are not above, as the nanoseconds that it ends below; 0 without
// samples.
double time_below_ns(const driver::Sums& sums, double share, const TickRate& ticks);

}  // namespace verbscope
