// The doctor's report on one machine, as text.
#pragma once

#include <string>
#include <vector>

#include "harness/doctor/findings.hpp"

namespace verbscope {

// Lines of facts, then two lines for each finding: the problem after "  ! ", and its remedy, indented. Ends with a
// newline.
std::string host_report(const std::string& host, const Json& facts, const std::vector<Finding>& findings);

}  // namespace verbscope
