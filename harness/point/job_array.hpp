// A whole sweep as a Slurm job array: each task runs its share of the points and leaves its records in a folder beside
// the results file, OUT.parts; collecting joins them in the order of the points. The folder must be on a file system
// that the nodes share.
#pragma once

#include <cstdio>
#include <filesystem>
#include <vector>

#include "harness/point/run_options.hpp"
#include "harness/process/stop.hpp"
#include "harness/sweep/sweep.hpp"

namespace verbscope {

// Submits the points to run on `hosts`, waits for the array's end, collects. On a stop the job is cancelled by its
// number, and what had ended is collected. Returns what run_sweep returns. Throws when sbatch refuses, or OUT.parts is
// there already.
int run_job_array(const RunOptions& options, const std::string& hosts, const std::vector<Point>& points,
                  const std::string& fabric, const std::filesystem::path& results, const std::filesystem::path& folder,
                  StopSource* stop, std::FILE* out);

// `verbscope collect OUT`: appends the records in OUT.parts to OUT in the order of the points, and removes the folder
// when none is missing. Returns 0 when every point is there and ok, else 1. Throws when there is no such folder.
int collect_parts(const std::filesystem::path& results, std::FILE* out);

}  // namespace verbscope
