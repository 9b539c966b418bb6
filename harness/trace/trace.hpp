// Runs a program under the preloaded library, tells the person what it does, and writes records of it.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "wire/nic_family.hpp"

namespace verbscope {

struct TraceRequest {
  std::vector<std::string> arguments;     // of the program, its name first
  std::vector<std::string> command_line;  // of this one
  std::string nic = "auto";
  std::string cluster;                             // that findings are reckoned for; empty: the family's usual one
  bool verify = false;                             // its WQEs, in the memory of its queues
  std::string json;                                // records are appended here; empty: nowhere
  std::optional<std::chrono::milliseconds> every;  // also so often while it runs
};

// The cluster of configs/clusters/ whose costs stand for those of a family of adapters.
const char* usual_cluster(NicFamily family);

// Ends as the program does: returns its exit status, or ends by its signal. Throws Error and UsageError where it cannot
// be started, or the records not be written.
int trace(const TraceRequest& request);

}  // namespace verbscope
