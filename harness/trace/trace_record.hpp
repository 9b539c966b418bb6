// What a traced process did, as a record.
#pragma once

#include <string>
#include <vector>

#include "common/record.hpp"
#include "harness/trace/trace_text.hpp"

namespace verbscope {

struct TraceSetting {
  std::vector<std::string> arguments;     // of the program
  std::vector<std::string> command_line;  // of this one
  std::string nic;                        // as asked for
  const Profile* profile = nullptr;       // of the cluster that findings are reckoned for; null: of none
};

// A record of benchmark "trace". `part`: "whole", or "so_far" of a process that still runs. The counts of `source`
// "driver" have events of which the driver decides alone; where the adapter has a say the event is unseen, and `extra`
// has what the driver knows and the interval of the rest.
Record trace_record(const driver::Summary& process, const TraceSetting& setting, const std::string& part,
                    double active_s);

}  // namespace verbscope
