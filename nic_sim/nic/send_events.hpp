// What happens to send WQEs, an event each. The parts of a requester schedule them; Requester does what follows.
#pragma once

#include "nic_sim/time/engine.hpp"

namespace verbscope::sim {

struct SendEvents {
  void* requester;  // the object of each event

  // With a QpWord: of the first WQE of a batch;
  Engine::Action wqes_fetched;  // a DMA read of its WQEs is back
  // of a run of WQEs, as WqeFetcher says it;
  Engine::Action wqes_read_again;
  // of the WQE that was sent (UC, UD), or whose response waits for it;
  Engine::Action sent;
  Engine::Action wqe_read_for_answer;
  Engine::Action wqe_handled_for_answer;
  // of how many waits for a receiver there were before;
  Engine::Action receiver_wait_over;
  // of nothing.
  Engine::Action retry_due;
  // With a packet: a piece of its payload was read.
  Engine::Action payload_read;
  // With a QP: it may send again.
  Engine::Action rate_allows;
};

}  // namespace verbscope::sim
