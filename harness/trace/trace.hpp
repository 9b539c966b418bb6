// Runs a program with the preloaded library, prints what it did, and writes records.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "wire/nic_family.hpp"

namespace verbscope {

struct TraceRequest {
  std::vector<std::string> arguments;     // of the program, starting with its name
  std::vector<std::string> command_line;  // of verbscope
  std::string nic = "auto";
  std::string cluster;                             // whose costs findings use; empty: that of the adapter's family
  bool verify = false;                             // compare its WQEs with the computed ones
  std::string json;                                // append records to this file; empty: none
  std::optional<std::chrono::milliseconds> every;  // also report at this interval while it runs
};

// Returns the program's exit status, or ends this process by the signal that ended the program. Throws Error or
// UsageError if the program cannot be started or the records cannot be written.
int trace(const TraceRequest& request);

}  // namespace verbscope
