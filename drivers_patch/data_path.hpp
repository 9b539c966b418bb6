// Replacements for the provider's calls in ibv_context::ops. Each counts and calls the provider's.
#pragma once

#include <infiniband/verbs.h>

namespace verbscope::driver {

int counted_post_send(ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr** bad_wr);
int counted_post_recv(ibv_qp* qp, ibv_recv_wr* wr, ibv_recv_wr** bad_wr);
int counted_post_srq_recv(ibv_srq* srq, ibv_recv_wr* wr, ibv_recv_wr** bad_wr);
int counted_poll_cq(ibv_cq* cq, int entries, ibv_wc* wc);
int counted_req_notify_cq(ibv_cq* cq, int solicited_only);

}  // namespace verbscope::driver
