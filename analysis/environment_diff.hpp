// Differences between the environments of two sets of records. Read them before comparing rates.
#pragma once

#include <string>
#include <vector>

#include "common/record.hpp"

namespace verbscope {

// A fact with the distinct values of each side, in order of appearance. A side without the fact has no values.
struct EnvironmentDifference {
  std::string fact;  // "kernel", "hosts.n1.devices.mlx5_0.firmware"
  std::vector<std::string> base, other;
};

// The facts whose values differ. Those that most often explain a change are first: firmware, driver, kernel, commit,
// cluster profile. Times, command lines and leftovers of a point are not facts.
std::vector<EnvironmentDifference> environment_differences(const std::vector<Record>& base,
                                                           const std::vector<Record>& other);

// One line per difference, or a line that reports none. Ends with a newline. Control characters are escaped as in JSON.
std::string environment_text(const std::vector<EnvironmentDifference>& differences);
Json environment_json(const std::vector<EnvironmentDifference>& differences);

}  // namespace verbscope
