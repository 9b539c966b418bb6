// Posting a prebuilt list of work requests: by ibv_post_send, or with the ibv_wr_* builder where the thread has one.
// Data path.
#pragma once

#include <infiniband/verbs.h>

#include <cerrno>
#include <cstdint>

#include "microbench/bench/control.hpp"

namespace verbscope {

// Posts by ibv_post_send. Returns 0 or an errno value.
inline int post_list(ibv_qp* qp, ibv_send_wr* first) {
  ibv_send_wr* bad;
  return ibv_post_send(qp, first, &bad);
}

// Posts with the ibv_wr_* builder: all or none of the list is posted. Returns 0 or an errno value.
inline int post_list(ibv_qp_ex* qp, const ibv_send_wr* first) {
  ibv_wr_start(qp);
  for (const ibv_send_wr* wr = first; wr != nullptr; wr = wr->next) {
    qp->wr_id = wr->wr_id;
    qp->wr_flags = wr->send_flags & ~unsigned{IBV_SEND_INLINE};
    switch (wr->opcode) {
      case IBV_WR_SEND:
        ibv_wr_send(qp);
        break;
      case IBV_WR_SEND_WITH_IMM:
        ibv_wr_send_imm(qp, wr->imm_data);
        break;
      case IBV_WR_RDMA_WRITE:
        ibv_wr_rdma_write(qp, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr);
        break;
      case IBV_WR_RDMA_WRITE_WITH_IMM:
        ibv_wr_rdma_write_imm(qp, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr, wr->imm_data);
        break;
      case IBV_WR_RDMA_READ:
        ibv_wr_rdma_read(qp, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr);
        break;
      case IBV_WR_ATOMIC_CMP_AND_SWP:
        ibv_wr_atomic_cmp_swp(qp, wr->wr.atomic.rkey, wr->wr.atomic.remote_addr, wr->wr.atomic.compare_add,
                              wr->wr.atomic.swap);
        break;
      case IBV_WR_ATOMIC_FETCH_AND_ADD:
        ibv_wr_atomic_fetch_add(qp, wr->wr.atomic.rkey, wr->wr.atomic.remote_addr, wr->wr.atomic.compare_add);
        break;
      default:
        ibv_wr_abort(qp);
        return EINVAL;
    }
    if (qp->qp_base.qp_type == IBV_QPT_UD) {
      ibv_wr_set_ud_addr(qp, wr->wr.ud.ah, wr->wr.ud.remote_qpn, wr->wr.ud.remote_qkey);
    }
    if ((wr->send_flags & IBV_SEND_INLINE) != 0 && wr->num_sge == 1) {
      ibv_wr_set_inline_data(qp, reinterpret_cast<void*>(wr->sg_list->addr), wr->sg_list->length);
    } else {
      ibv_wr_set_sge_list(qp, static_cast<std::size_t>(wr->num_sge), wr->sg_list);
    }
  }
  return ibv_wr_complete(qp);
}

// Posts a list of RECVs. Returns 0 or an errno value.
inline int post_recv_list(ibv_qp* qp, ibv_recv_wr* first) {
  ibv_recv_wr* bad;
  return ibv_post_recv(qp, first, &bad);
}

// Whether a post succeeded, which returned `error`. If not, `end` says that it failed on the thread's queue `queue`.
inline bool post_succeeded(int error, std::uint32_t queue, RunEnd& end) {
  if (error == 0) [[likely]]
    return true;
  end = {.kind = EndKind::post_failed, .code = error, .queue = queue};
  return false;
}

// Posts with `builder`, or where there is none by ibv_post_send. False, with `end` set: the post failed.
inline bool post_list(ibv_qp* qp, ibv_qp_ex* builder, ibv_send_wr* first, std::uint32_t queue, RunEnd& end) {
  return post_succeeded(builder != nullptr ? post_list(builder, first) : post_list(qp, first), queue, end);
}

}  // namespace verbscope
