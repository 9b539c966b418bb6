// Replacements for the provider's data path: the calls in ibv_context::ops, of builders (ibv_wr_*) and of extended
// completion queues. Each counts and calls the provider's.
#pragma once

#include <infiniband/verbs.h>

#include "drivers_patch/layout.hpp"

namespace verbscope::driver {

int counted_post_send(ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr** bad_wr);
int counted_post_recv(ibv_qp* qp, ibv_recv_wr* wr, ibv_recv_wr** bad_wr);
int counted_post_srq_recv(ibv_srq* srq, ibv_recv_wr* wr, ibv_recv_wr** bad_wr);
int counted_poll_cq(ibv_cq* cq, int entries, ibv_wc* wc);
int counted_req_notify_cq(ibv_cq* cq, int solicited_only);

// Replaces the provider's calls by counting calls and stores the provider's in `calls`.
void wrap_builder(ibv_qp_ex& extended, BuilderCalls& calls);

// Replaces the provider's calls by counting calls and stores the provider's in `calls`.
void wrap_polling(ibv_cq_ex& cq, PollCalls& calls);

}  // namespace verbscope::driver
