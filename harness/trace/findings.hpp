// Computes from a cluster's profile how long each of its resources takes for the requests of a traced program, and
// which requests cost more than necessary. The longest time is a lower bound on the program's run time. docs/trace.md
// has the rules.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/resource.hpp"
#include "drivers_patch/summary.hpp"
#include "nic_sim/profile/profile.hpp"

namespace verbscope {

struct ResourceTime {
  Resource resource;
  bool of_peer = false;  // the resource belongs to the peer that receives from one connection
  double seconds = 0;
};

// "the NIC's responder units", "one QP's responder unit of the peer".
std::string words_for(const ResourceTime& time);

// Sorted by time, longest first; resources that need no time are left out. Empty if there are no requests and no used
// RECVs.
std::vector<ResourceTime> limits_of(const driver::Summary& program, const Profile& profile);

struct TraceFinding {
  std::string name;  // "not inline", the key that docs/trace.md explains
  std::string text;
  std::uint64_t requests = 0;  // posts, polls or registrations that the change concerns
  double gain_percent = 0;     // upper bound on the rise of the rate
  ResourceTime bound{};        // limit after the change
};

// The gain of a change is computed by limits_of() on a copy of the program with that one change. Sorted by gain,
// largest first. Findings below `min_percent` are left out.
std::vector<TraceFinding> find_costs(const driver::Summary& program, const Profile& profile, double min_percent = 1);

}  // namespace verbscope
