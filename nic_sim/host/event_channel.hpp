// The completion channels of a simulated node: interrupts append events, and threads sleep until one arrives.
// docs/simulator.md has the sequence.
#pragma once

#include <infiniband/verbs.h>

#include <deque>
#include <vector>

#include "nic_sim/host/thread.hpp"

namespace verbscope::sim {

struct SimChannel : ibv_comp_channel {
  // The interrupt of a queue's completion, and its time.
  struct Event {
    ibv_cq* cq;
    Picos at;
  };

  // Schedules an interrupt for `cq` at `at`.
  void interrupt(ibv_cq* cq, Picos at) {
    pending.push_back({cq, at});
    for (SimThread* sleeper : sleepers) sleeper->rouse_at(at);
  }

  Picos wakeup;                      // HostProfile::event_wakeup
  std::deque<Event> pending;         // in order; not yet consumed
  std::vector<SimThread*> sleepers;  // in SimNode::await_event
};

}  // namespace verbscope::sim
