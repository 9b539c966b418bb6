// The limits of a point by simulated runs: twice of each resource of its cluster, and of each option that is a limit.
#pragma once

#include "analysis/explain.hpp"
#include "harness/what_if/simulated_runs.hpp"

namespace verbscope {

// Fills limits, gains, what was tried and what failed. `basis` is a simulated record of the point: its busy times say
// which resources are likely. Throws Error when no run succeeded, InterruptedError at the stop.
void find_limits(const Record& basis, SimulatedRuns& runs, Explanation& out);

}  // namespace verbscope
