// QPs and address handles of the null device.
#include <cerrno>
#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>

#include "verbs/null/objects.hpp"
#include "verbs/qp_states.hpp"

namespace verbscope {

namespace {

// Completions of a QP that is reset or destroyed leave its CQs (rdma-core 44 providers/mlx5/cq.c, mlx5_cq_clean).
void empty_queues(NullQp& qp) {
  for (ibv_cq* const used : {qp.send_cq, qp.recv_cq}) {
    NullCq& cq = *static_cast<NullCq*>(used);
    const std::lock_guard guard(cq.lock);
    for (std::size_t left = cq.count; left > 0; --left) {
      const NullCompletion completion = cq.pop();
      if (completion.qp != &qp) cq.push(completion);
    }
  }
  qp.send_queue.freed = qp.send_queue.posted;
  qp.recv_queue.freed = qp.recv_queue.posted;
}

}  // namespace

ibv_qp* NullProvider::create_qp(ibv_pd* pd, ibv_qp_init_attr* attr) {
  const ibv_qp_type type = attr->qp_type;
  if (type != IBV_QPT_RC && type != IBV_QPT_UC && type != IBV_QPT_UD) return no_object(EOPNOTSUPP);
  if (attr->send_cq == nullptr || attr->recv_cq == nullptr || attr->srq != nullptr) return no_object(EINVAL);
  if (!state_->allows(attr->cap)) return no_object(EINVAL);
  auto qp = std::make_unique<NullQp>();
  qp->context = pd->context;
  qp->qp_context = attr->qp_context;
  qp->pd = pd;
  qp->send_cq = attr->send_cq;
  qp->recv_cq = attr->recv_cq;
  qp->qp_type = type;
  qp->state = IBV_QPS_RESET;
  qp->send_queue = {attr->cap.max_send_wr, attr->cap.max_send_sge};
  qp->recv_queue = {attr->cap.max_recv_wr, attr->cap.max_recv_sge};
  qp->max_inline = attr->cap.max_inline_data;
  qp->signal_all = attr->sq_sig_all != 0;
  const std::lock_guard guard(state_->mutex);
  if (std::cmp_greater_equal(state_->qps.size(), state_->limits.max_qp)) return no_object(ENOMEM);
  qp->qp_num = state_->next_number++;
  ++static_cast<NullPd*>(pd)->children;
  ++static_cast<NullCq*>(qp->send_cq)->users;
  ++static_cast<NullCq*>(qp->recv_cq)->users;
  return keep(state_->qps, std::move(qp));
}

int NullProvider::modify_qp(ibv_qp* base, ibv_qp_attr* attr, int mask) {
  const ibv_qp_state to = (mask & IBV_QP_STATE) != 0 ? attr->qp_state : base->state;
  if (!may_modify(base->qp_type, base->state, to, mask)) return EINVAL;
  base->state = to;
  if (to == IBV_QPS_RESET) empty_queues(*static_cast<NullQp*>(base));
  return 0;
}

int NullProvider::query_qp(ibv_qp* base, ibv_qp_attr* attr, int, ibv_qp_init_attr* init) {
  const NullQp& qp = *static_cast<NullQp*>(base);
  *attr = {};
  *init = {};
  attr->qp_state = attr->cur_qp_state = qp.state;
  attr->cap = {qp.send_queue.depth, qp.recv_queue.depth, qp.send_queue.max_sge, qp.recv_queue.max_sge, qp.max_inline};
  init->cap = attr->cap;
  init->qp_type = qp.qp_type;
  init->send_cq = qp.send_cq;
  init->recv_cq = qp.recv_cq;
  init->sq_sig_all = qp.signal_all ? 1 : 0;
  return 0;
}

int NullProvider::destroy_qp(ibv_qp* base) {
  NullQp& qp = *static_cast<NullQp*>(base);
  const std::lock_guard guard(state_->mutex);
  empty_queues(qp);
  for (ibv_cq* const used : {qp.send_cq, qp.recv_cq}) --static_cast<NullCq*>(used)->users;
  --static_cast<NullPd*>(qp.pd)->children;
  state_->qps.erase(base);
  return 0;
}

ibv_ah* NullProvider::create_ah(ibv_pd* pd, ibv_ah_attr* attr) {
  if (attr->port_num != 1) return no_object(EINVAL);
  auto ah = std::make_unique<ibv_ah>();
  ah->context = pd->context;
  ah->pd = pd;
  const std::lock_guard guard(state_->mutex);
  ++static_cast<NullPd*>(pd)->children;
  return keep(state_->ahs, std::move(ah));
}

int NullProvider::destroy_ah(ibv_ah* ah) {
  const std::lock_guard guard(state_->mutex);
  --static_cast<NullPd*>(ah->pd)->children;
  state_->ahs.erase(ah);
  return 0;
}

}  // namespace verbscope
