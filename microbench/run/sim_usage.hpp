// How busy the parts of a simulated node were in a window, as further counters of its report.
#pragma once

#include "common/json.hpp"
#include "nic_sim/nic/counts.hpp"
#include "nic_sim/profile/profile.hpp"

namespace verbscope {

// What was in use between `begin` and `end`, in picoseconds, beside how many there are of what is several
// (docs/records.md lists the keys). Of several units, ports, slots and threads the sum, and the busiest one alone.
Json usage_json(const UsageTimes& begin, const UsageTimes& end, const Profile& profile);

}  // namespace verbscope
