// Completion events, as the NIC makes them: the program arms a completion queue, and a completion that meets an armed
// queue raises one event. docs/simulator.md has the sequence.
#pragma once

#include <cstdint>

#include "common/units.hpp"

namespace verbscope::sim {

class Nic;
struct Completion;
struct SimCq;

// Which completions the program wants to be told of.
enum class Notify : std::uint8_t { none, solicited, any };

// A completion queue keeps the program's request for an event here: one event, then it is forgotten.
struct Arming {
  Notify asked = Notify::none;
  bool at_nic = false;  // the doorbell has arrived
  bool met = false;     // a completion came before it was armed
};

// The program asks for an event of `cq`, by a doorbell that arrives at the NIC at `when`. Completions that the program
// can see by now cause none.
void arm(Nic& nic, SimCq& cq, Notify asked, Picos when);

// `completion` has come to a queue for which an event is asked.
void meet(Nic& nic, SimCq& cq, const Completion& completion);

}  // namespace verbscope::sim
