// What of a program's requests costs more than it must on a cluster, and what a change would gain: each is reckoned by
// limits_of() from the same requests once more, with that one thing changed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/trace/limits.hpp"

namespace verbscope {

struct TraceFinding {
  std::string name;            // "not inline", the key that docs/trace.md explains
  std::string text;            // which requests, and what to change
  std::uint64_t requests = 0;  // posts, polls or registrations that it comes from
  double gain_percent = 0;     // by how much the rate can rise, at most
  Taken bound{};               // what the program meets then
};

// The largest gain first; those below `least_percent` are left out.
std::vector<TraceFinding> find_costs(const driver::Summary& program, const Profile& profile, double least_percent = 1);

}  // namespace verbscope
