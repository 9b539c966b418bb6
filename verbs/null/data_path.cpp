// The null device's data path: allocates nothing, throws nothing.
#include <cerrno>
#include <mutex>
#include <optional>
#include <span>

#include "verbs/ibv_codes.hpp"
#include "verbs/null/device.hpp"
#include "verbs/sge_walk.hpp"

namespace verbscope {

namespace {

template <class Request>
std::uint64_t length_of(const Request& wr) {
  return sge_bytes({wr.sg_list, static_cast<std::size_t>(wr.num_sge)});
}

// Why a device refuses the work request, as an errno value; the values are those of rdma-core 44 providers/mlx5/qp.c.
int refusal(const NullQp& qp, const ibv_send_wr& wr) {
  const std::optional<Verb> verb = verb_of(wr.opcode);
  const TransportFacts& transport = facts(qp.transport);
  if (qp.state != IBV_QPS_RTS || !verb || !transport.verbs.has(*verb)) return EINVAL;
  if (!transport.connected && wr.wr.ud.ah == nullptr) return EINVAL;
  if (qp.send_queue.full()) return ENOMEM;
  if (wr.num_sge < 0 || static_cast<std::uint32_t>(wr.num_sge) > qp.send_queue.max_sge) return ENOMEM;
  if ((wr.send_flags & IBV_SEND_INLINE) != 0 && length_of(wr) > qp.max_inline) return ENOMEM;
  return 0;
}

int refusal(const NullQp& qp, const ibv_recv_wr& wr) {
  if (qp.state == IBV_QPS_RESET) return EINVAL;
  if (qp.recv_queue.full()) return ENOMEM;
  if (wr.num_sge < 0 || static_cast<std::uint32_t>(wr.num_sge) > qp.recv_queue.max_sge) return EINVAL;
  return 0;
}

}  // namespace

int null_post_send(ibv_qp* base, ibv_send_wr* list, ibv_send_wr** bad) {
  NullQp& qp = *static_cast<NullQp*>(base);
  NullCq& cq = *static_cast<NullCq*>(qp.send_cq);
  const std::lock_guard guard(cq.lock);
  for (ibv_send_wr* wr = list; wr != nullptr; wr = wr->next) {
    const bool signaled = qp.signal_all || (wr->send_flags & IBV_SEND_SIGNALED) != 0;
    // A device would overrun the CQ and stop; refusing tells the program where.
    const int error = signaled && cq.full() ? ENOMEM : refusal(qp, *wr);
    if (error != 0) {
      *bad = wr;
      return error;
    }
    ++qp.send_queue.posted;
    if (signaled) cq.push({&qp, wr->wr_id, completion_opcode(*verb_of(wr->opcode)), 0, qp.send_queue.posted});
  }
  return 0;
}

int null_post_recv(ibv_qp* base, ibv_recv_wr* list, ibv_recv_wr** bad) {
  NullQp& qp = *static_cast<NullQp*>(base);
  NullCq& cq = *static_cast<NullCq*>(qp.recv_cq);
  const std::lock_guard guard(cq.lock);
  for (ibv_recv_wr* wr = list; wr != nullptr; wr = wr->next) {
    const int error = cq.full() ? ENOMEM : refusal(qp, *wr);
    if (error != 0) {
      *bad = wr;
      return error;
    }
    ++qp.recv_queue.posted;
    const auto bytes = static_cast<std::uint32_t>(length_of(*wr));
    cq.push({&qp, wr->wr_id, IBV_WC_RECV, bytes, qp.recv_queue.posted});
  }
  return 0;
}

int null_poll_cq(ibv_cq* base, int entries, ibv_wc* completions) {
  NullCq& cq = *static_cast<NullCq*>(base);
  const std::lock_guard guard(cq.lock);
  int polled = 0;
  for (; polled < entries && cq.count > 0; ++polled) {
    const NullCompletion completion = cq.pop();
    NullQueue& queue = completion.opcode == IBV_WC_RECV ? completion.qp->recv_queue : completion.qp->send_queue;
    queue.freed = completion.position;
    ibv_wc& wc = completions[polled];
    wc = ibv_wc{};
    wc.wr_id = completion.wr_id;
    wc.status = IBV_WC_SUCCESS;
    wc.opcode = completion.opcode;
    wc.byte_len = completion.byte_len;
    wc.qp_num = completion.qp->qp_num;
  }
  return polled;
}

int null_req_notify_cq(ibv_cq*, int) {
  return ENOSYS;
}

}  // namespace verbscope
