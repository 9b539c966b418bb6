// The doctor's report on one machine, as text.
#pragma once

#include <string>
#include <vector>

#include "harness/doctor/findings.hpp"

namespace verbscope {

// Lines of facts; then, for each finding, a line "  ! WHAT" and a line "      TODO". Ends with a newline.
std::string host_report(const std::string& host, const Json& facts, const std::vector<Finding>& findings);

}  // namespace verbscope
