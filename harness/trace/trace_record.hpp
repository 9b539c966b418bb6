// Makes a record of what a traced process did.
#pragma once

#include <string>
#include <vector>

#include "common/json.hpp"
#include "common/record.hpp"
#include "drivers_patch/summary.hpp"
#include "harness/trace/trace_text.hpp"

namespace verbscope {

// The use of each queue by a traced program, as JSON in a record, so that limits and findings can be computed later.
Json program_json(const driver::Summary& program);

// Restores the parts of the summary that limits_of() and find_costs() read. Throws Error that names `where`.
driver::Summary program_from_json(const Json& json, const std::string& where);

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
