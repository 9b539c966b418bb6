// Finds the limits of a point by simulated runs with twice as much of each resource of its cluster, and of each
// limiting option.
#pragma once

#include "analysis/explain.hpp"
#include "harness/what_if/simulated_runs.hpp"

namespace verbscope {

// Fills in the limits, the gains, and the tried and failed runs. `basis`: a simulated record of the point, whose busy
// times determine the likely resources. Throws Error if no run succeeded, InterruptedError at the stop.
void find_limits(const Record& basis, SimulatedRuns& runs, Explanation& out);

}  // namespace verbscope
