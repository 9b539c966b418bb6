// Runs all points of a sweep and appends one record per point to the results file.
#pragma once

#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "harness/cluster/launcher.hpp"
#include "harness/point/roles.hpp"
#include "harness/sweep/load_sweep.hpp"

namespace verbscope {

// LoadOptions select the sweep, SelectOptions its points; the other members control how they run.
struct RunOptions : LoadOptions, SelectOptions {
  std::string hosts;         // sim:NAME, null, host, slurm, localhost, a hosts file, or a,b; empty: as in the sweep
  std::string out;           // results file; empty: results/local/SWEEP.jsonl
  RoleLimits limits;         // time limits of one point
  LauncherOptions launcher;  // empty name: chosen by launcher_for
  int port = 0;              // TCP port of the server; 0: the system chooses
  int jobs = 1;              // points at the same time, if each is one process; 0: one per CPU
  int retries = 0;           // further attempts at a point that failed
  bool fail_fast = false;    // stop at the first point that failed
  int array = 0;             // submit this many tasks to Slurm; 0: run here
  std::vector<std::string> sbatch;  // additional arguments for sbatch
};

// Runs the sweep with the binaries in `folder` on options.hosts, or else on the sweep's own `fabrics`, one after
// another. Progress goes to `out`. Returns 0 if every point is ok. Otherwise prints a line on standard error and
// returns 1 if points failed (later fabrics still run), or kExitInterrupted after SIGINT or SIGTERM. The file contains
// the records of all finished points. Throws for errors before the first point, such as an unreachable host; the file
// is then unchanged.
int run_sweep(const RunOptions& options, const std::filesystem::path& folder, std::FILE* out);

}  // namespace verbscope
