// What spoils a measurement on a machine, and what to do about it.
#pragma once

#include <string>
#include <vector>

#include "common/json.hpp"

namespace verbscope {

struct Finding {
  std::string what;  // "cores: governor powersave, not performance"
  std::string todo;  // "cpupower frequency-set -g performance"
};

// What a hosts file wants of a machine.
struct Wanted {
  std::string device{};  // empty: any
  int ib_port = 0;       // 0: any
  std::string cores{};   // as Linux lists them; empty: not said
  int numa_node = -1;    // -1: not said
};

// Judges what host_facts gave, perhaps on another machine: what is missing or of another type counts as not known.
// Devices and ports that the file does not want are left alone.
std::vector<Finding> judge_host(const Json& facts, const Wanted& wanted);

}  // namespace verbscope
