// Runs every point of a sweep: one record each, appended to the results file.
#pragma once

#include <cstdio>
#include <filesystem>

#include "harness/point/run_options.hpp"

namespace verbscope {

// Runs the sweep with the binaries in `folder` on options.hosts, or where the sweep's own `fabrics` say; progress goes
// to `out`. Returns 0 when every point is ok; 1 when some failed, which does not keep the next place from its run, and
// kExitInterrupted after SIGINT or SIGTERM, each with a line on standard error. Records of points that had ended are in
// the file. Throws
// for what is wrong before the first point, a host that cannot be reached among it: the file is left as it was.
int run_sweep(const RunOptions& options, const std::filesystem::path& folder, std::FILE* out);

}  // namespace verbscope
