// The completion channels of a simulated node: interrupts put events there, and threads sleep until one comes.
// docs/simulator.md has the sequence.
#pragma once

#include <infiniband/verbs.h>

#include <deque>
#include <vector>

#include "nic_sim/host/thread.hpp"

namespace verbscope::sim {

struct SimChannel : ibv_comp_channel {
  // The interrupt of a queue's completion, and when it comes.
  struct Event {
    ibv_cq* cq;
    Picos at;
  };

  // The interrupt for `cq` comes at `at`.
  void interrupt(ibv_cq* cq, Picos at) {
    pending.push_back({cq, at});
    for (SimThread* sleeper : sleepers) sleeper->rouse_at(at);
  }

  Picos wakeup;                      // HostProfile::event_wakeup
  std::deque<Event> pending;         // in order; nobody has taken them yet
  std::vector<SimThread*> sleepers;  // in SimNode::await_event
};

}  // namespace verbscope::sim
