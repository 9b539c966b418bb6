// The parameters of a simulated cluster that are assumed, neither documented nor fitted to anything, and that a run
// rested on.
#pragma once

#include <vector>

#include "common/json.hpp"
#include "common/record.hpp"

namespace verbscope {

// {"QP contexts": {"assumed": ["qp_context_bytes", ...], "of": 8}, ...}: by mechanism that the counters saw at work,
// where at least one of its parameters in the profile (the JSON of configs/clusters) is assumed. `operations` are those
// of the window.
Json assumed_parameters(const Json& profile, const std::vector<CounterReport>& counters, double operations);

}  // namespace verbscope
