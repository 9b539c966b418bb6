// Logical processes, as in parallel discrete-event simulation (Fujimoto, CACM 33(10), 1990), and the mailbox through
// which the nodes in them affect each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <utility>
#include <vector>

#include "common/units.hpp"
#include "nic_sim/time/engine.hpp"

namespace verbscope::sim {

struct LogicalProcess {
  // `only_one`: the cluster has no other process, so the simulation ends with the last simulated thread.
  explicit LogicalProcess(bool only_one) : alone(only_one) {}

  // Call in the last event of a simulated thread.
  void thread_ended() {
    if (--unfinished_threads == 0 && alone) engine.set_horizon(engine.now().count());
  }

  Engine engine;
  int unfinished_threads = 0;
  bool alone;
  std::exception_ptr error;  // thrown by an event of this process
};

class Mailbox {
 public:
  // `partition_of`: the partition of each node, below `partitions`.
  Mailbox(std::vector<std::size_t> partition_of, std::size_t partitions)
      : partition_of_(std::move(partition_of)), partitions_(partitions), boxes_(partition_of_.size() * partitions) {}

  // `action` happens at node `to` at `when`, which must not be before the end of the quantum in which `from` sends it.
  void send(std::uint32_t from, std::uint32_t to, Picos when, Engine::Action action, void* object,
            std::uint64_t argument) {
    boxes_[from * partitions_ + partition_of_[to]].push_back({when, action, object, argument});
  }

  // After a quantum: schedules the events sent to the nodes of a partition. Different partitions may do so
  // concurrently.
  void deliver(std::size_t partition, Engine& engine) {
    for (std::size_t box = partition; box < boxes_.size(); box += partitions_) {
      for (const Event& event : boxes_[box]) engine.schedule(event.when, event.action, event.object, event.argument);
      boxes_[box].clear();
    }
  }

  std::size_t partitions() const { return partitions_; }

 private:
  struct Event {
    Picos when;
    Engine::Action action;
    void* object;
    std::uint64_t argument;
  };

  std::vector<std::size_t> partition_of_;
  std::size_t partitions_;
  std::vector<std::vector<Event>> boxes_;  // [node that sends][partition that gets]
};

}  // namespace verbscope::sim
