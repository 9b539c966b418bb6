// How long the resources of a cluster take for what a traced program did, by the parameters of the cluster's profile.
// The longest of these times is what the program would meet first, if nothing but its own requests held it up: it
// cannot be quicker. docs/trace.md has the rules.
#pragma once

#include <string>
#include <vector>

#include "analysis/resource.hpp"
#include "drivers_patch/summary.hpp"
#include "nic_sim/profile/profile.hpp"

namespace verbscope {

struct Taken {
  Resource resource;
  bool of_peer = false;  // of the peer that takes what one connection sends
  double seconds = 0;
};

// "the NIC's responder units", "one QP's responder unit of the peer".
std::string words_for(const Taken& taken);

// The longest first; those that take no time are left out. Empty: no requests, and no RECVs that were used.
std::vector<Taken> limits_of(const driver::Summary& program, const Profile& profile);

}  // namespace verbscope
