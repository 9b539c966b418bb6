// Posts RECVs to a QP's own queue or to a shared one.
#include <algorithm>
#include <cerrno>

#include "nic_sim/device/data_path.hpp"
#include "nic_sim/nic/nic.hpp"
#include "verbs/sge_walk.hpp"

namespace verbscope::sim {
namespace {

// Appends a list to a receive queue. `in_use` returns the number of occupied places. Returns 0, or an error and the
// failing request.
template <class InUse>
int append_recvs(RecvQueue& queue, ibv_recv_wr* wr, ibv_recv_wr** bad_wr, InUse&& in_use) {
  for (; wr != nullptr; wr = wr->next) {
    const bool too_many = wr->num_sge < 0 || static_cast<std::uint32_t>(wr->num_sge) > queue.max_sge;
    if (too_many || in_use() >= queue.depth) {
      *bad_wr = wr;
      return too_many ? EINVAL : ENOMEM;
    }
    RecvWqe& wqe = queue.at(queue.posted);
    wqe = RecvWqe{wr->wr_id, static_cast<std::uint32_t>(wr->num_sge),
                  sge_bytes({wr->sg_list, static_cast<std::size_t>(wr->num_sge)})};
    std::copy_n(wr->sg_list, wr->num_sge, queue.sges_of(queue.posted));
    ++queue.posted;
  }
  return 0;
}

// Charges the thread for posting `count` descriptors of RECVs.
void spend_on_recvs(const Nic& nic, std::uint64_t count) {
  if (SimThread* thread = nic.running_thread()) {
    const HostProfile& host = nic.profile().host;
    thread->spend(host.post_recv_call + host.post_recv_wqe * static_cast<std::int64_t>(count));
    thread->sync();
  }
}

}  // namespace

int post_recv(ibv_qp* verbs_qp, ibv_recv_wr* wr, ibv_recv_wr** bad_wr) {
  SimQp& qp = as_sim(verbs_qp);
  RecvQueue& queue = qp.recv;
  if (qp.state == IBV_QPS_RESET || qp.srq != nullptr) {
    *bad_wr = wr;
    return EINVAL;
  }
  const std::uint64_t first = queue.posted;
  const int error = append_recvs(queue, wr, bad_wr, [&queue] { return queue.posted - queue.freed; });
  if (queue.posted == first) return error;
  spend_on_recvs(*qp.nic, divide_up(queue.posted - first, queue.per_descriptor));
  if (qp.state == IBV_QPS_ERR) {
    qp.nic->recvs().flush(qp);
  } else {
    qp.nic->recv_fetcher().fetch(qp);
  }
  return error;
}

int post_srq_recv(ibv_srq* verbs_srq, ibv_recv_wr* wr, ibv_recv_wr** bad_wr) {
  SimSrq& srq = *static_cast<SimSrq*>(verbs_srq);
  RecvQueue& queue = srq.queue;
  const std::uint64_t first = queue.posted;
  // A place is free again as soon as a message uses its RECV.
  const int error = append_recvs(queue, wr, bad_wr, [&queue] { return queue.posted - queue.used; });
  if (queue.posted == first) return error;
  Nic& nic = *as_sim(srq.context).nic;
  spend_on_recvs(nic, queue.posted - first);
  nic.recv_fetcher().fetch(srq);
  return error;
}

}  // namespace verbscope::sim
