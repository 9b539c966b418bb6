// The options of `verbscope run`.
#pragma once

#include <string>
#include <vector>

#include "harness/cluster/launcher.hpp"
#include "harness/point/roles.hpp"
#include "harness/sweep/load_sweep.hpp"
#include "harness/sweep/selection.hpp"

namespace verbscope {

// LoadOptions name the sweep and SelectOptions those of its points that run; the rest says how.
struct RunOptions : LoadOptions, SelectOptions {
  std::string hosts;         // sim:NAME, null, host, slurm, localhost, a hosts file or a,b; empty: the sweep's own
  std::string out;           // results file; empty: results/local/SWEEP.jsonl
  RoleLimits limits;         // the longest waits of one point
  LauncherOptions launcher;  // an empty name: the launcher that the hosts need
  int port = 0;              // TCP port of the server; 0: the system picks
  int jobs = 1;              // points side by side, where one process is a point; 0: one for each CPU
  int retries = 0;           // further attempts at a point that failed
  bool fail_fast = false;    // stop at the first point that failed
  int array = 0;             // submit so many tasks to Slurm instead; 0: run here
  std::vector<std::string> sbatch;  // further arguments of sbatch
};

}  // namespace verbscope
