// Events inside a NIC: the parts of a requester or responder schedule them, and Requester or Responder handles them.
#pragma once

#include "nic_sim/time/engine.hpp"

namespace verbscope::sim {

// Events in the life of send WQEs, handled by Requester.
struct SendEvents {
  void* requester;  // the object of each event

  // Argument: a QpWord. Its count is
  Engine::Action wqes_fetched;            // the batch's first WQE: a DMA read of WQEs has completed
  Engine::Action wqes_read_again;         // a run of WQEs, packed by WqeFetcher: they were read again after a miss
  Engine::Action sent;                    // the WQE whose last packet has left the port (UC, UD)
  Engine::Action wqe_read_for_answer;     // the WQE that a response needs: it was read again after a miss
  Engine::Action wqe_handled_for_answer;  // the same WQE: a unit has processed it
  Engine::Action receiver_wait_over;      // the number of the RNR wait that ends
  Engine::Action retry_due;               // 0: the retransmission timer has expired

  Engine::Action payload_read;  // argument: the packet whose payload, or a piece of it, was read
  Engine::Action rate_allows;   // argument: the QP, which may send again
};

// Events in the life of arrived packets, handled by Responder.
struct ReceiveEvents {
  void* responder;  // the object of each event

  Engine::Action state_is_near;         // argument: the packet, which joins the line of its QP
  Engine::Action unit_is_free;          // argument: the number of the unit, whose posted writes have credits again
  Engine::Action read_done;             // argument: the QP, for whose first packet a context or translations were read
  Engine::Action answer_taken;          // argument: the QP, whose unit has processed the answer in front
  Engine::Action unit_has_worked;       // argument: the QP, whose unit has processed the request in front
  Engine::Action recvs_fetched;         // argument: a QpWord; its count is the number of RECVs
  Engine::Action shared_recvs_fetched;  // argument: a shared queue and a number of RECVs, packed by RecvFetcher
  Engine::Action atomic_done;           // argument: the packet that answers the atomic
};

}  // namespace verbscope::sim
