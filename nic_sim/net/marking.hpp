// ECN: an output marks packets as they leave, by the length of its queue then, as switches with a shared buffer do, so
// that the mark does not wait with them (Zhu et al., "ECN or Delay", CoNEXT 2016, section 5.2). None below K_min, all
// above K_max, and a share between that rises to P_max (Zhu et al., "Congestion Control for Large-Scale RDMA
// Deployments", SIGCOMM 2015, section 3.1).
#pragma once

#include <cstdint>

#include "nic_sim/profile/profile.hpp"
#include "nic_sim/profile/random.hpp"

namespace verbscope::sim {

class Marking {
 public:
  explicit Marking(const SwitchProfile& profile)
      : least_(profile.ecn_least.value), most_(profile.ecn_most.value), probability_(profile.ecn_probability) {}

  // Whether a packet is marked that leaves a queue of `queue` bytes.
  bool marks(std::uint64_t queue, Random& random) const {
    if (most_ == 0 || queue < least_) return false;
    if (queue >= most_) return true;
    const double share = static_cast<double>(queue - least_) / static_cast<double>(most_ - least_);
    return random.uniform() < probability_ * share;
  }

 private:
  std::uint64_t least_;
  std::uint64_t most_;
  double probability_;
};

}  // namespace verbscope::sim
