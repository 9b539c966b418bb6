// Findings: each names one thing that spoils a measurement on a machine, and what to do about it.
#pragma once

#include <string>
#include <vector>

#include "common/json.hpp"

namespace verbscope {

struct Finding {
  std::string what;  // "cores: governor powersave, not performance"
  std::string todo;  // "cpupower frequency-set -g performance"
};

// The device, port, cores and memory node of a machine that a hosts file asks for.
struct Wanted {
  std::string device{};  // empty: any
  int ib_port = 0;       // 0: any
  std::string cores{};   // a list as Linux writes it; empty: not said
  int numa_node = -1;    // -1: not said
};

// Judges what host_facts gave, perhaps on another machine: what is missing or of another type counts as not known.
// Devices and ports that the file does not want are left alone.
std::vector<Finding> judge_host(const Json& facts, const Wanted& wanted);

}  // namespace verbscope
