// Runs a sweep as a Slurm job array. Each task runs its share of the points and writes records to the folder OUT.parts
// beside the results file. Collecting appends them to the results file in the order of the points. The folder must be
// on a file system that all nodes share.
#pragma once

#include <cstdio>
#include <filesystem>
#include <vector>

#include "harness/point/run_sweep.hpp"
#include "harness/process/stop.hpp"
#include "harness/sweep/sweep.hpp"

namespace verbscope {

// Submits the points, waits until the array has ended, and collects the records. On a stop, cancels the job and
// collects the finished points. Returns what run_sweep returns. Throws if sbatch refuses or OUT.parts exists.
int run_job_array(const RunOptions& options, const std::string& hosts, const std::vector<Point>& points,
                  const std::string& fabric, const std::filesystem::path& results, const std::filesystem::path& folder,
                  StopSource* stop, std::FILE* out);

// `verbscope collect OUT`: appends the records in OUT.parts to OUT in the order of the points, and removes the folder
// if none is missing. Returns 0 if every point has a record that is ok, else 1. Throws if the folder does not exist.
int collect_parts(const std::filesystem::path& results, std::FILE* out);

}  // namespace verbscope
