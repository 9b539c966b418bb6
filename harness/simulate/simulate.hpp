// `verbscope simulate`: runs programs of the operating system on the nodes of a simulated cluster.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/units.hpp"
#include "harness/simulate/programs.hpp"

namespace verbscope {

struct SimulateRequest {
  std::string cluster = "cib";
  int nodes = 0;  // 0: as many as the programs need
  std::uint64_t seed = 1;
  std::vector<SimulatedProgram> programs;
  std::vector<std::string> command_line;           // of verbscope
  std::optional<std::chrono::milliseconds> limit;  // of real time
  std::string output_folder;  // for a file per node; empty: print with the node's name in front of each line
  std::string json;           // append a record to this file; empty: none
  std::chrono::nanoseconds silence{2'000'000};
  Picos start_gap{100'000'000'000};
};

// Prints what the programs print, and a summary. Returns 0, or 1 if a program failed. Throws Error, UsageError, and
// InterruptedError.
int simulate_programs(const SimulateRequest& request);

}  // namespace verbscope
