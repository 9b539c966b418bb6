// The data path of the simulated device: the functions behind ibv_post_send, ibv_post_recv, ibv_post_srq_recv,
// ibv_poll_cq and ibv_req_notify_cq. They charge the calling thread what the call costs a CPU, and hand the work to the
// NIC at the thread's time.
#pragma once

#include <infiniband/verbs.h>

namespace verbscope::sim {

// Errors as the manual pages have them: EINVAL (state, opcode, SGE count), ENOMEM (queue full, inline too long).
int post_send(ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr** bad_wr);
// Posts the whole list or, on an error, none of it.
int post_send_all(ibv_qp* qp, ibv_send_wr* list);
int post_recv(ibv_qp* qp, ibv_recv_wr* wr, ibv_recv_wr** bad_wr);
int post_srq_recv(ibv_srq* srq, ibv_recv_wr* wr, ibv_recv_wr** bad_wr);
// -1 when the completion queue has overrun.
int poll_cq(ibv_cq* cq, int entries, ibv_wc* wc);
// Writes a doorbell to the NIC. Completions that can be seen by then cause no event.
int req_notify_cq(ibv_cq* cq, int solicited_only);

}  // namespace verbscope::sim
