// Completion events: ibv_req_notify_cq, what the NIC does when a completion meets an armed queue, and the channels on
// which threads sleep. docs/simulator.md has the sequence.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <deque>
#include <vector>

#include "common/units.hpp"

namespace verbscope::sim {

class Nic;
class SimThread;
struct Completion;
struct SimCq;

// Which completions the program wants to be told of.
enum class Notify : std::uint8_t { none, solicited, any };

// What a completion queue knows of the request for an event: one event, then it is forgotten.
struct Arming {
  Notify asked = Notify::none;
  bool at_nic = false;  // the doorbell has arrived
  bool met = false;     // by a completion before it has
};

struct SimChannel : ibv_comp_channel {
  struct Event {
    SimCq* cq;
    Picos at;  // of the interrupt
  };
  Nic* nic;
  std::deque<Event> pending;         // in order; nobody has taken them yet
  std::vector<SimThread*> sleepers;  // in await_event
};

// ibv_req_notify_cq: writes a doorbell to the NIC. Completions that can be seen by then cause no event.
int req_notify_cq(ibv_cq* cq, int solicited_only);

// `completion` has come to a queue for which an event is asked.
void meet(Nic& nic, SimCq& cq, const Completion& completion);

}  // namespace verbscope::sim
