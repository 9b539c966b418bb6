// The time that code takes on a simulated machine with a given memory.
#pragma once

#include <cstdint>
#include <functional>

#include "nic_sim/cluster.hpp"
#include "nic_sim/host/sim_node.hpp"
#include "nic_sim/profile/profile.hpp"

namespace verbscope::test {

inline constexpr std::uint64_t kOutstandingMisses = 10;  // of the machine below

// The time that a thread takes for `body`, if a load that misses the caches takes `dram`.
inline Picos simulated_time(const std::function<void(SimNode&)>& body, Picos dram) {
  Profile profile = load_profile("cx3");
  profile.host.dram = dram;
  profile.host.outstanding_misses = kOutstandingMisses;
  SimCluster cluster(profile, 1, 1);
  Picos took{0};
  cluster.add_thread(0, 0, [&](SimNode& node) {
    const Picos begin = node.now();
    body(node);
    took = node.now() - begin;
  });
  cluster.run();
  return took;
}

}  // namespace verbscope::test
