// Runs all points of a sweep and appends one record per point to the results file.
#pragma once

#include <cstdio>
#include <filesystem>

#include "harness/point/run_options.hpp"

namespace verbscope {

// Runs the sweep with the binaries in `folder` on options.hosts, or else on the sweep's own `fabrics`, one after
// another. Progress goes to `out`. Returns 0 if every point is ok. Otherwise prints a line on standard error and
// returns 1 if points failed (later fabrics still run), or kExitInterrupted after SIGINT or SIGTERM. The file contains
// the records of all finished points. Throws for errors before the first point, such as an unreachable host; the file
// is then unchanged.
int run_sweep(const RunOptions& options, const std::filesystem::path& folder, std::FILE* out);

}  // namespace verbscope
