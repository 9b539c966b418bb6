// The options of `verbscope run`.
#pragma once

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

}  // namespace verbscope
