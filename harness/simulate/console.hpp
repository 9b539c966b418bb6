// `verbscope simulate`: a simulation of programs, its output and its files.
#pragma once

#include <string>

#include "harness/simulate/simulate.hpp"

namespace verbscope {

struct SimulateOutput {
  std::string folder;  // for a file per node; empty: print with the node's name in front of each line
  std::string json;    // append a record to this file; empty: none
};

// Prints what the programs print, the progress on a terminal, and a summary. Returns 0, or 1 if a program failed.
// Throws Error, UsageError, and InterruptedError.
int simulate_programs(const SimulateRequest& request, const SimulateOutput& output);

}  // namespace verbscope
