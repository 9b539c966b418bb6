// The doctor's report of one machine, for a person.
#pragma once

#include <string>
#include <vector>

#include "harness/doctor/findings.hpp"

namespace verbscope {

// Lines of facts, then a line "  ! WHAT" and one "      TODO" for each finding. Ends with a newline.
std::string host_report(const std::string& host, const Json& facts, const std::vector<Finding>& findings);

}  // namespace verbscope
