// What differs between the environments of two sets of records: looked at before any rate is.
#pragma once

#include <string>
#include <vector>

#include "common/record.hpp"

namespace verbscope {

// A fact with the values that each side has, each once, in order of appearance. A side without it has none.
struct EnvironmentDifference {
  std::string fact;  // "kernel", "hosts.n1.devices.mlx5_0.firmware"
  std::vector<std::string> base, other;
};

// The facts whose values differ, those that explain a change most often first: firmware, driver, kernel, commit,
// cluster profile. Times, command lines and what a point left behind are no facts.
std::vector<EnvironmentDifference> environment_differences(const std::vector<Record>& base,
                                                           const std::vector<Record>& other);

// A line each, or one that says that there are none; ends with a newline. Control characters are shown as JSON shows
// them.
std::string environment_text(const std::vector<EnvironmentDifference>& differences);
Json environment_json(const std::vector<EnvironmentDifference>& differences);

}  // namespace verbscope
