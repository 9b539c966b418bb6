// ECN marking. An output marks packets when they leave, by the length of its queue at that time, as switches with a
// shared buffer do: the mark does not wait in the queue (Zhu et al., "ECN or Delay", CoNEXT 2016, section 5.2). The
// probability is 0 below K_min, rises to P_max at K_max, and is 1 above (Zhu et al., "Congestion Control for
// Large-Scale RDMA Deployments", SIGCOMM 2015, section 3.1).
#pragma once

#include <cstdint>

#include "nic_sim/profile/profile.hpp"
#include "nic_sim/profile/random.hpp"

namespace verbscope::sim {

class Marking {
 public:
  explicit Marking(const SwitchProfile& profile)
      : least_(profile.ecn_least.value), most_(profile.ecn_most.value), probability_(profile.ecn_probability) {}

  // True if a packet that leaves a queue of `queue` bytes is to be marked.
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
