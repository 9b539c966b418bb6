// The completion channels of a simulated node: interrupts append events, and threads sleep until one arrives.
// docs/simulator.md has the sequence.
#pragma once

#include <infiniband/verbs.h>

#include <algorithm>
#include <cerrno>
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
    for (SimThread* sleeper : sleepers) sleeper->end_sleep_at(at);
  }

  // `thread` sleeps until an event has arrived, and consumes it. Returns the event's CQ; null, with errno ETIMEDOUT,
  // after `timeout`.
  ibv_cq* await(SimThread& thread, Nanos timeout) {
    const Picos deadline = thread.clock() + timeout;
    bool slept = false;
    thread.sync();
    while (pending.empty() || pending.front().at > thread.clock()) {
      if (thread.clock() >= deadline) {
        errno = ETIMEDOUT;
        return nullptr;
      }
      sleepers.push_back(&thread);
      thread.sleep(pending.empty() ? deadline : std::min(deadline, pending.front().at));
      std::erase(sleepers, &thread);
      slept = true;
    }
    ibv_cq* const cq = pending.front().cq;
    pending.pop_front();
    if (slept) thread.skip_to(thread.clock() + wakeup);
    return cq;
  }

  Picos wakeup;                      // HostProfile::event_wakeup
  std::deque<Event> pending;         // in order; not yet consumed
  std::vector<SimThread*> sleepers;  // in await()
};

}  // namespace verbscope::sim
