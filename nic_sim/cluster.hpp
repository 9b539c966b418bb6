// A simulated cluster: so many nodes of one profile on one switch, in one process and one virtual time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "common/pcie_events.hpp"
#include "common/units.hpp"
#include "nic_sim/counts.hpp"
#include "nic_sim/profile.hpp"
#include "nic_sim/sim_node.hpp"
#include "verbs/provider.hpp"

namespace verbscope {

class SimCluster {
 public:
  // The same profile, nodes and seed give the same run, event for event.
  SimCluster(const Profile& profile, int nodes, std::uint64_t seed);
  ~SimCluster();
  SimCluster(const SimCluster&) = delete;
  SimCluster& operator=(const SimCluster&) = delete;

  // The verbs of a node: device "sim0" with the profile's ports. Lives as long as the cluster.
  Provider& provider(int node);
  int nodes() const;
  int cores() const;  // of each node

  // A thread of `node`, pinned to `core`; `body` runs in it during run(). Throws Error when the node has no such core
  // or the core has a thread already.
  void add_thread(int node, int core, std::function<void(SimNode&)> body);

  // Runs `action` at virtual time `when`, then wakes every thread that waits for a completion.
  void at(Picos when, std::function<void()> action);

  // Runs until every thread has ended; rethrows what one threw. Throws Error when all threads wait and nothing can
  // happen any more.
  void run();

  Picos now() const;
  std::uint64_t events_run() const;
  // Memory of the simulation that grows with what is outstanding: events and packets that there is room for.
  std::size_t event_places() const;
  std::size_t packets_allocated() const;

  // Running totals of a node; take differences.
  PcieCounts pcie_counts(int node) const;
  NicCounts nic_counts(int node) const;
  UsageTimes usage_times(int node) const;
  // CPU time of a node's threads so far, polling included; a thread that sleeps for an event takes none.
  Picos busy_time(int node) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace verbscope
