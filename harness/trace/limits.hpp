// The time that each resource of a cluster needs for the requests of a traced program, computed from the cluster's
// profile. The longest time is a lower bound on the program's run time. docs/trace.md has the rules.
#pragma once

#include <string>
#include <vector>

#include "analysis/resource.hpp"
#include "drivers_patch/summary.hpp"
#include "nic_sim/profile/profile.hpp"

namespace verbscope {

struct Taken {
  Resource resource;
  bool of_peer = false;  // the resource belongs to the peer that receives from one connection
  double seconds = 0;
};

// "the NIC's responder units", "one QP's responder unit of the peer".
std::string words_for(const Taken& taken);

// Sorted by time, longest first; resources that need no time are left out. Empty if there are no requests and no used
// RECVs.
std::vector<Taken> limits_of(const driver::Summary& program, const Profile& profile);

}  // namespace verbscope
