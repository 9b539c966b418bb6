// The programs of a simulation, from its command line.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace verbscope {

struct SimulatedProgram {
  int node = 0;
  std::string folder{};                    // in which it starts; empty: the current one
  std::vector<std::string> environment{};  // "NAME=value"
  std::vector<std::string> arguments;      // starting with its name

  // "node1: ib_write_bw".
  std::string title() const;
};

// Programs are parted by "::". In front of each may stand "@NODE" or "@NODE:FOLDER" and "NAME=value". Without "@" the
// programs are on nodes 0, 1, 2 and so on. Throws UsageError.
std::vector<SimulatedProgram> parse_programs(const std::vector<std::string>& words);

}  // namespace verbscope
