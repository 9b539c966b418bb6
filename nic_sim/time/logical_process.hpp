// A logical process, in the words of parallel discrete-event simulation (Fujimoto, CACM 33(10), 1990): a part of a
// simulated cluster that runs by an engine of its own, beside the others in each quantum (quanta.hpp).
#pragma once

#include <exception>

#include "nic_sim/time/engine.hpp"

namespace verbscope::sim {

struct LogicalProcess {
  // `only_one`: the cluster has no other, so that the simulation ends as soon as the last simulated thread does.
  explicit LogicalProcess(bool only_one) : alone(only_one) {}

  // A simulated thread has ended, as its last event.
  void thread_ended() {
    if (--unfinished_threads == 0 && alone) engine.set_horizon(engine.now().count());
  }

  Engine engine;
  int unfinished_threads = 0;
  bool alone;
  std::exception_ptr error;  // an event of this process threw it
};

}  // namespace verbscope::sim
