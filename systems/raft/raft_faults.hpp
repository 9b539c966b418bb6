// Faults of a simulated cluster of replicas, one after another while the clients run.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "common/units.hpp"
#include "systems/service/sim_faults.hpp"

namespace verbscope {

enum class RaftFault : std::uint8_t {
  leader_killed,
  follower_killed,
  all_killed,
  leader_cut,  // off from all others
  follower_cut,
  leader_paused,
  slow_follower,
  busy_machines,  // the leader is killed while other programs have the cores of all replicas most of the time
  full_log,       // of the leader
};

// "none", "random", or a list: "leader_killed,full_log". Throws UsageError.
std::vector<RaftFault> parse_faults(const std::string& text);

// The replicas, as the script sees them.
struct RaftFaultView {
  std::uint32_t replicas = 0;
  std::function<bool(std::uint32_t)> leads;          // whether a replica leads, if it runs
  std::function<std::uint64_t(std::uint32_t)> term;  // its term
  std::function<void(std::uint32_t, bool)> fill;     // takes all space for its log, or gives it back
};

struct RaftFaultReport {
  std::uint64_t faults = 0;
  Picos longest_without_leader{0};  // with a majority that can elect one
};

// Runs until the clients are done. Each fault lasts for a few election time-outs. Throws Error if there is no leader
// ten election time-outs after a fault began or ended.
void run_raft_faults(SimFaults& cluster, const std::vector<RaftFault>& faults, Picos election,
                     const RaftFaultView& view, RaftFaultReport& report);

}  // namespace verbscope
