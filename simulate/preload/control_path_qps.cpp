// The functions of libibverbs that make, change and destroy queue pairs.
#include <pthread.h>

#include "simulate/preload/exported.hpp"
#include "simulate/preload/objects.hpp"

namespace verbscope::simulate {
namespace {

ibv_qp* create_qp_ex(ibv_context* context, ibv_qp_init_attr_ex* attr) {
  const auto has = [attr](std::uint32_t flag) { return (attr->comp_mask & flag) != 0; };
  ibv_pd* const pd = has(IBV_QP_INIT_ATTR_PD) ? attr->pd : nullptr;
  ibv_xrcd* const xrcd = has(IBV_QP_INIT_ATTR_XRCD) ? attr->xrcd : nullptr;
  if ((pd != nullptr && pd->context != context) || (xrcd != nullptr && xrcd->context != context))
    return no_object(EINVAL);
  Qp& whole = *new Qp;
  ibv_qp& qp = whole.qp_base;
  qp.context = context;
  qp.qp_context = attr->qp_context;
  qp.pd = pd;
  qp.send_cq = attr->send_cq;
  qp.recv_cq = attr->recv_cq;
  qp.srq = attr->srq;
  qp.qp_type = attr->qp_type;
  prepare_waits(qp);
  Request request(Operation::create_qp);
  request.put(&qp).put(own(context).handle).put(handle_of(pd)).put(handle_of(static_cast<Xrcd*>(xrcd)));
  request.put(handle_of(attr->send_cq)).put(handle_of(attr->recv_cq)).put(handle_of(attr->srq));
  const int error = request.put(*attr).ask();
  if (error != 0) return refused<ibv_qp>(&whole, error);
  qp.handle = request.get<std::uint32_t>();
  qp.qp_num = request.get<std::uint32_t>();
  attr->cap = request.get<ibv_qp_cap>();
  whole.builds = has(IBV_QP_INIT_ATTR_SEND_OPS_FLAGS);
  if (whole.builds) offer(whole, attr->send_ops_flags, qp, attr->cap, &post_send_all);
  return &qp;
}

ibv_qp* open_qp(ibv_context* context, ibv_qp_open_attr* attr) {
  constexpr std::uint32_t kNeeded = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
  if ((attr->comp_mask & kNeeded) != kNeeded) return no_object(EINVAL);
  Qp& whole = *new Qp;
  ibv_qp& qp = whole.qp_base;
  qp.context = context;
  qp.qp_context = (attr->comp_mask & IBV_QP_OPEN_ATTR_CONTEXT) != 0 ? attr->qp_context : nullptr;
  qp.qp_num = attr->qp_num;
  qp.qp_type = attr->qp_type;
  prepare_waits(qp);
  Request request(Operation::open_qp);
  request.put(&qp).put(own(context).handle).put(handle_of(static_cast<Xrcd*>(attr->xrcd)));
  const int error = request.put(attr->qp_num).put(attr->qp_type).ask();
  if (error != 0) return refused<ibv_qp>(&whole, error);
  qp.handle = request.get<std::uint32_t>();
  qp.state = request.get<ibv_qp_state>();
  return &qp;
}

}  // namespace

void set_qp_calls(Context& context) {
  context.create_qp_ex = &create_qp_ex;
  context.open_qp = &open_qp;
}

}  // namespace verbscope::simulate

using namespace verbscope::simulate;

EXPORTED ibv_qp* ibv_create_qp(ibv_pd* pd, ibv_qp_init_attr* attr) {
  ibv_qp_init_attr_ex all{};
  all.qp_context = attr->qp_context;
  all.send_cq = attr->send_cq;
  all.recv_cq = attr->recv_cq;
  all.srq = attr->srq;
  all.cap = attr->cap;
  all.qp_type = attr->qp_type;
  all.sq_sig_all = attr->sq_sig_all;
  all.comp_mask = IBV_QP_INIT_ATTR_PD;
  all.pd = pd;
  ibv_qp* const qp = create_qp_ex(pd->context, &all);
  if (qp != nullptr) attr->cap = all.cap;
  return qp;
}

EXPORTED ibv_qp_ex* ibv_qp_to_qp_ex(ibv_qp* qp) {
  return own(qp).builds ? &own(qp) : nullptr;
}

EXPORTED int ibv_modify_qp(ibv_qp* qp, ibv_qp_attr* attr, int mask) {
  Request request(Operation::modify_qp);
  const int error = request.put(qp->handle).put(*attr).put(mask).ask();
  if (error == 0) qp->state = request.get<ibv_qp_state>();
  return error;
}

EXPORTED int ibv_query_qp(ibv_qp* qp, ibv_qp_attr* attr, int mask, ibv_qp_init_attr* init) {
  Request request(Operation::query_qp);
  const int error = request.put(qp->handle).put(mask).ask();
  if (error != 0) return error;
  *attr = request.get<ibv_qp_attr>();
  *init = request.get<ibv_qp_init_attr>();
  init->qp_context = qp->qp_context;
  init->send_cq = qp->send_cq;
  init->recv_cq = qp->recv_cq;
  init->srq = qp->srq;
  qp->state = attr->qp_state;
  return 0;
}

EXPORTED int ibv_query_qp_data_in_order(ibv_qp* qp, ibv_wr_opcode opcode, uint32_t flags) {
  Request request(Operation::query_qp_data_in_order);
  request.put(qp->handle).put(opcode).put(flags).ask();
  return request.get<int>();  // 0 on errors
}

// The device has no enhanced connection establishment.
EXPORTED int ibv_query_ece(ibv_qp*, ibv_ece*) {
  return EOPNOTSUPP;
}
EXPORTED int ibv_set_ece(ibv_qp*, ibv_ece*) {
  return EOPNOTSUPP;
}

EXPORTED int ibv_attach_mcast(ibv_qp* qp, const ibv_gid* gid, uint16_t lid) {
  return ask(Operation::attach_mcast, qp->handle, *gid, lid);
}

EXPORTED int ibv_detach_mcast(ibv_qp* qp, const ibv_gid* gid, uint16_t lid) {
  return ask(Operation::detach_mcast, qp->handle, *gid, lid);
}

EXPORTED int ibv_destroy_qp(ibv_qp* qp) {
  const int error = ask(Operation::destroy_qp, qp->handle);
  if (error != 0) return error;
  await_acknowledged(qp->events_completed, own(qp).got);
  delete &own(qp);
  return 0;
}
