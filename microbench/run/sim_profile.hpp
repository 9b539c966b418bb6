// The profile of a simulated cluster, and what the record of a run tells of it.
#pragma once

#include <string>
#include <vector>

#include "common/json.hpp"
#include "common/record.hpp"
#include "nic_sim/profile/profile.hpp"

namespace verbscope {

struct SimProfile {
  // The profile that `fabric` names, "sim:NAME". Throws Error.
  explicit SimProfile(const std::string& fabric);

  // The parameters that are assumed and that a run depended on:
  // {"QP contexts": {"assumed": ["qp_context_bytes", ...], "of": 8}, ...}. A mechanism is listed if the counters show
  // that it took part and at least one of its parameters is assumed. `operations`: those of the interval.
  Json assumed(const std::vector<CounterReport>& counters, double operations) const;

  Json parameters;  // as its file has them
  Profile profile;
  std::string checksum;  // of the content, independent of the layout of its text
};

}  // namespace verbscope
