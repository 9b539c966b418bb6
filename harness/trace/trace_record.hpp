// Makes a record of what a traced process did.
#pragma once

#include <string>
#include <vector>

#include "common/record.hpp"
#include "harness/trace/trace_text.hpp"

namespace verbscope {

struct TraceSetting {
  std::vector<std::string> arguments;     // of the program
  std::vector<std::string> command_line;  // of verbscope
  std::string nic;                        // --nic as given
  const Profile* profile = nullptr;       // the cluster whose costs findings use; null: no findings
};

// A record of benchmark "trace". `part`: "whole", or "so_far" if the process still runs. The report of source "driver"
// counts the events that the driver alone decides. Events that the adapter influences are unseen there; `extra` has
// their exact part and the interval of the rest.
Record trace_record(const driver::Summary& process, const TraceSetting& setting, const std::string& part,
                    double active_s);

}  // namespace verbscope
