// What happens to packets that have arrived, an event each. The parts of a responder schedule them; Responder does what
// follows.
#pragma once

#include "nic_sim/time/engine.hpp"

namespace verbscope::sim {

struct ReceiveEvents {
  void* responder;  // the object of each event

  Engine::Action state_is_near;  // with a packet: it comes to the line of its QP
  Engine::Action unit_is_free;   // with the unit's number: its posted writes have credits
  // With a QP:
  Engine::Action read_done;        // its state, or translations that were missing for the packet in front, were read
  Engine::Action answer_taken;     // its unit has taken in the answer in front
  Engine::Action unit_has_worked;  // its unit has worked on the request in front
  // With a QpWord of how many RECVs; with a shared queue and how many, as RecvFetcher says it.
  Engine::Action recvs_fetched;
  Engine::Action shared_recvs_fetched;
  Engine::Action atomic_done;  // with the answer to it
};

}  // namespace verbscope::sim
