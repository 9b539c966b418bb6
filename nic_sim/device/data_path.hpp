// The data path of the simulated device: ibv_post_send, ibv_post_recv, ibv_post_srq_recv, ibv_poll_cq and
// ibv_req_notify_cq. Each charges the calling thread with the CPU time of the call and passes the work to the NIC at
// the thread's time.
#pragma once

#include <infiniband/verbs.h>

namespace verbscope::sim {

// Errors as in the manual pages: EINVAL (state, opcode, SGE count), ENOMEM (queue full, inline data too long).
int post_send(ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr** bad_wr);
// Posts the whole list or, on an error, nothing.
int post_send_all(ibv_qp* qp, ibv_send_wr* list);
// Posts a request to bind a window of type 1. EPERM: window and region are of different PDs.
int bind_mw(ibv_qp* qp, ibv_mw* mw, ibv_mw_bind* bind);
int post_recv(ibv_qp* qp, ibv_recv_wr* wr, ibv_recv_wr** bad_wr);
int post_srq_recv(ibv_srq* srq, ibv_recv_wr* wr, ibv_recv_wr** bad_wr);
// -1 if the completion queue has overrun.
int poll_cq(ibv_cq* cq, int entries, ibv_wc* wc);
// Writes a doorbell to the NIC. Completions that are already visible when it arrives cause no event.
int req_notify_cq(ibv_cq* cq, int solicited_only);

}  // namespace verbscope::sim
