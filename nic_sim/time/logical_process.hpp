// A logical process, as in parallel discrete-event simulation (Fujimoto, CACM 33(10), 1990): a part of a simulated
// cluster with its own engine, which runs in parallel with the others in each quantum (quanta.hpp).
#pragma once

#include <exception>

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

}  // namespace verbscope::sim
