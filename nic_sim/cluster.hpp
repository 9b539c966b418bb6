// A simulated cluster: nodes of one profile and their network, in one process and one virtual time.
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

namespace sim {
class Engine;
}

// How a simulation is divided among partitions and threads of the host.
struct SimWork {
  static constexpr std::uint32_t kMaxPartitions = 256;
  // The partition of each node, from 0 to kMaxPartitions - 1. Nodes of a partition are simulated together. Empty: one
  // partition.
  std::vector<std::size_t> partitions{};
  // Threads of the host, among which the partitions are divided.
  std::size_t threads = 1;
};

class SimCluster {
 public:
  // Runs with the same profile, nodes and seed have the same events. `work` changes the duration of a run, but not its
  // results. Simulated threads of different partitions must share nothing except by verbs, and must not call the
  // cluster.
  SimCluster(const Profile& profile, int nodes, std::uint64_t seed, const SimWork& work = {});
  ~SimCluster();
  SimCluster(const SimCluster&) = delete;
  SimCluster& operator=(const SimCluster&) = delete;

  // The verbs of a node, with device "sim0". Valid as long as the cluster.
  Provider& provider(int node);
  // Contexts and completion channels that are made from now on have file descriptors, as those of libibverbs: readable
  // while an event waits.
  void make_pollable();
  int nodes() const;
  int cores() const;  // of each node
  // The first core of the node without a thread that runs; none if all have one.
  std::optional<int> free_core(int node) const;

  // Adds a thread of `node`, pinned to `core`, which runs `body` during run(). Numbers from cores() on are the second
  // hyper-threads of the cores, if the profile has them. Without a core it takes no time from other threads. Throws
  // Error if the node does not have the core, or if the core has a thread that has not ended.
  void add_thread(int node, std::optional<int> core, std::function<void(SimNode&)> body);

  // Faults of a node. Call from an action of at() or the controller, not from a simulated thread.
  // Ends the threads of the node, whose cores are free then. The objects on their stacks are destroyed.
  void end_threads(int node);
  // The threads of the node stand still for `time`, after earlier such times.
  void hold_threads(int node, Picos time);
  // The cables of the node are cut: packets from and to it are lost. join() ends this.
  void cut(int node);
  void join(int node);

  // Capacity of each adapter's cache, in address translations.
  std::uint64_t translation_places() const;

  // Runs `action` at virtual time `when`, before other events of that time, while no simulated thread runs. Then each
  // waiting thread continues, to check for changes. A simulated thread may call this only in a cluster of one
  // partition; otherwise throws Error.
  void at(Picos when, std::function<void()> action);

  // Runs until all threads have ended; with several partitions, up to one packet's latency longer. Rethrows exceptions
  // of threads. Throws Error if all threads wait and no event is left.
  void run();
  // The same beside `controller`, a fiber that runs while no thread does. It starts first and waits with wait_until. If
  // the threads end before it does, it goes on in settle(), or is unwound with the cluster.
  void run(std::function<void()> controller);
  // For programs outside of the simulation, which act through simulated threads: `ask` is called before each quantum
  // and may add threads. `stuck`: all threads wait, and no event is left; then it returns true if there is one now, and
  // run() throws otherwise.
  void ask_outside(std::function<bool(bool stuck)> ask);
  // For what acts beside simulated threads. Precondition: the cluster has one partition.
  sim::Engine& engine();
  // While true, the end of all threads does not end run(): more will be added. False at first.
  void expect_threads(bool expected);
  // From the controller: returns at virtual time `when`, as an action of at() would run then.
  void wait_until(Picos when);

  // After run(): continues until no event is left, for at most `limit`.
  void settle(Picos limit);

  Picos now() const;
  std::uint64_t events_run() const;
  // Allocated room for events and packets. It grows with outstanding work, not with simulated time.
  std::size_t event_places() const;
  std::size_t packets_allocated() const;

  // Totals of a node since the start; take differences.
  PcieCounts pcie_counts(int node) const;
  NicCounts nic_counts(int node) const;
  std::optional<EthernetCounts> ethernet_counts(int node) const;  // none on InfiniBand
  // Longest queue in switches for a port of the node so far, in bytes; 0 on InfiniBand.
  std::uint64_t deepest_queue(int node) const;
  UsageTimes usage_times(int node) const;
  // CPU time of a node's threads so far, including polling, without sleep.
  Picos busy_time(int node) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace verbscope
