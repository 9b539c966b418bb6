// Finds requests of a traced program that cost more than necessary on a cluster. The gain of a change is computed by
// limits_of() on a copy of the program with that one change.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/trace/limits.hpp"

namespace verbscope {

struct TraceFinding {
  std::string name;  // "not inline", the key that docs/trace.md explains
  std::string text;
  std::uint64_t requests = 0;  // posts, polls or registrations that the change concerns
  double gain_percent = 0;     // upper bound on the rise of the rate
  Taken bound{};               // limit after the change
};

// Sorted by gain, largest first. Findings below `least_percent` are left out.
std::vector<TraceFinding> find_costs(const driver::Summary& program, const Profile& profile, double least_percent = 1);

}  // namespace verbscope
