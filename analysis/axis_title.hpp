// Axis titles of figures: quantity and unit.
#pragma once

#include <string>

namespace verbscope {

// "payload (bytes)" for the option "size", "rate (Mops)" for the result "rate_mops". An unlisted key is split at its
// unit: "get_lat_p50_ns" gives "get lat p50 (ns)". Counts, such as threads, have no unit.
std::string axis_title(const std::string& key);

}  // namespace verbscope
