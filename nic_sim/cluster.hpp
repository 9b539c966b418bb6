// A simulated cluster: so many nodes of one profile on one switch, in one process and one virtual time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "common/pcie_events.hpp"
#include "common/units.hpp"
#include "nic_sim/host/sim_node.hpp"
#include "nic_sim/nic/counts.hpp"
#include "nic_sim/profile/profile.hpp"
#include "verbs/provider.hpp"

namespace verbscope {

// How the work of a simulation is shared out.
struct SimWork {
  static constexpr std::uint32_t kMaxPartitions = 256;
  // By node: those with one number, from 0 to kMaxPartitions - 1, are simulated together, a short while at a time.
  // None: all are.
  std::vector<std::size_t> partitions{};
  // Threads of this machine; they take the partitions in turn.
  std::size_t threads = 1;
};

class SimCluster {
 public:
  // A run repeats event for event when profile, nodes and seed are the same. `work` shares it out: that changes the
  // time that a run takes, and nothing that can be measured in it; but simulated threads of different partitions may
  // share nothing except by verbs, and not call the cluster.
  SimCluster(const Profile& profile, int nodes, std::uint64_t seed, const SimWork& work = {});
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

  // How many address translations the cache of each adapter holds.
  std::uint64_t translation_places() const;

  // Runs `action` at virtual time `when`, before what else happens then, while no thread runs; then wakes every thread
  // that waits for a completion. A simulated thread may call it only in a cluster of one partition: else it throws
  // Error.
  void at(Picos when, std::function<void()> action);

  // Runs until every thread has ended, with several partitions for up to one packet's way longer; rethrows what one
  // threw. Throws Error when all threads wait and nothing can happen any more.
  void run();

  // After run(): what is still on its way arrives, in the time `most` at most.
  void settle(Picos most);

  Picos now() const;
  std::uint64_t events_run() const;
  // Memory of the simulation that grows with what is outstanding: events and packets that there is room for.
  std::size_t event_places() const;
  std::size_t packets_allocated() const;

  // Running totals of a node; take differences.
  PcieCounts pcie_counts(int node) const;
  NicCounts nic_counts(int node) const;
  std::optional<EthernetCounts> ethernet_counts(int node) const;  // none on InfiniBand
  // The longest queue, in bytes, that has waited in the switch for a port of the node so far; 0 on InfiniBand.
  std::uint64_t deepest_queue(int node) const;
  UsageTimes usage_times(int node) const;
  // CPU time of a node's threads so far, polling included; a thread that sleeps for an event takes none.
  Picos busy_time(int node) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace verbscope
