// What stands at the axis of a figure: the quantity with its unit.
#pragma once

#include <string>

namespace verbscope {

// "payload (bytes)" for the option "size", "rate (Mops)" for the result "rate_mops". Keys that are not known in words
// are split at their unit: "get_lat_p50_ns" is "get lat p50 (ns)". What is counted in itself, as threads, has no unit.
std::string axis_title(const std::string& key);

}  // namespace verbscope
