// The times that the parts of a simulated node were busy in a window, as further counters of its report.
#pragma once

#include "common/json.hpp"
#include "nic_sim/nic/counts.hpp"
#include "nic_sim/profile/profile.hpp"

namespace verbscope {

// The time that each part was in use between `begin` and `end`, in picoseconds (docs/records.md lists the keys). Where
// there are several units, ports, slots or threads: how many, the sum of their times, and the busiest one alone.
Json usage_json(const UsageTimes& begin, const UsageTimes& end, const Profile& profile);

// The share of `time`, between `begin` and `end`, in which the adapter's units worked or waited: of all requester or
// responder units, or of those that served one QP, whichever is largest.
double use_of_units(const UsageTimes& begin, const UsageTimes& end, Picos time);

}  // namespace verbscope
