// Operations on queue pairs, address handles and multicast groups.
#include "simulate/server/control.hpp"

namespace verbscope::simulate {
namespace {

int create_qp(const Call& call) {
  auto* const own = call.in.get<void*>();
  auto* const context = object<ibv_context>(call, Kind::context);
  auto* const pd = object<ibv_pd>(call, Kind::pd);
  auto* const xrcd = object<ibv_xrcd>(call, Kind::xrcd);
  auto* const send_cq = object<ibv_cq>(call, Kind::cq);
  auto* const recv_cq = object<ibv_cq>(call, Kind::cq);
  auto* const srq = object<ibv_srq>(call, Kind::srq);
  auto attr = call.in.get<ibv_qp_init_attr_ex>();
  const auto lacks = [&attr](std::uint32_t flag, const void* given) {
    return (attr.comp_mask & flag) != 0 && given == nullptr;
  };
  if (context == nullptr || lacks(IBV_QP_INIT_ATTR_PD, pd) || lacks(IBV_QP_INIT_ATTR_XRCD, xrcd)) return EINVAL;
  attr.qp_context = own;
  attr.pd = pd;
  attr.xrcd = xrcd;
  attr.send_cq = send_cq;
  attr.recv_cq = recv_cq;
  attr.srq = srq;
  ibv_qp* const qp = call.process.provider().create_qp_ex(context, &attr);
  const int error = tell(call, Kind::qp, qp);
  if (error != 0) return error;
  qp->qp_context = own;
  call.out.put(qp->qp_num);
  call.out.put(sim::as_sim(qp).caps);
  return 0;
}

int open_qp(const Call& call) {
  ibv_qp_open_attr attr{};
  attr.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_CONTEXT | IBV_QP_OPEN_ATTR_TYPE;
  attr.qp_context = call.in.get<void*>();
  auto* const context = object<ibv_context>(call, Kind::context);
  attr.xrcd = object<ibv_xrcd>(call, Kind::xrcd);
  attr.qp_num = call.in.get<std::uint32_t>();
  attr.qp_type = call.in.get<ibv_qp_type>();
  if (context == nullptr || attr.xrcd == nullptr) return EINVAL;
  ibv_qp* const qp = call.process.provider().open_qp(context, &attr);
  const int error = tell(call, Kind::qp, qp);
  if (error == 0) call.out.put(qp->state);
  return error;
}

int modify_qp(const Call& call) {
  auto* const qp = object<ibv_qp>(call, Kind::qp);
  auto attr = call.in.get<ibv_qp_attr>();
  if (qp == nullptr) return EINVAL;
  const int error = call.process.provider().modify_qp(qp, &attr, call.in.get<int>());
  if (error == 0) call.out.put(qp->state);
  return error;
}

int query_qp(const Call& call) {
  auto* const qp = object<ibv_qp>(call, Kind::qp);
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  const int error = qp == nullptr ? EINVAL : call.process.provider().query_qp(qp, &attr, call.in.get<int>(), &init);
  if (error != 0) return error;
  call.out.put(attr);
  call.out.put(init);
  return 0;
}

int query_qp_data_in_order(const Call& call) {
  auto* const qp = object<ibv_qp>(call, Kind::qp);
  const auto opcode = call.in.get<ibv_wr_opcode>();
  const auto flags = call.in.get<std::uint32_t>();
  if (qp == nullptr) return EINVAL;
  call.out.put(call.process.provider().query_qp_data_in_order(qp, opcode, flags));
  return 0;
}

int create_ah(const Call& call) {
  auto* const pd = object<ibv_pd>(call, Kind::pd);
  auto attr = call.in.get<ibv_ah_attr>();
  return pd == nullptr ? EINVAL : tell(call, Kind::ah, call.process.provider().create_ah(pd, &attr));
}

// Attaches a QP to a multicast group, or detaches it.
int change_group(const Call& call, int (sim::SimProvider::*function)(ibv_qp*, const ibv_gid*, std::uint16_t)) {
  auto* const qp = object<ibv_qp>(call, Kind::qp);
  const auto gid = call.in.get<ibv_gid>();
  const auto lid = call.in.get<std::uint16_t>();
  return qp == nullptr ? EINVAL : (call.process.provider().*function)(qp, &gid, lid);
}

}  // namespace

int execute_qps(Operation operation, const Call& call) {
  switch (operation) {
    case Operation::create_qp:
      return create_qp(call);
    case Operation::open_qp:
      return open_qp(call);
    case Operation::modify_qp:
      return modify_qp(call);
    case Operation::query_qp:
      return query_qp(call);
    case Operation::query_qp_data_in_order:
      return query_qp_data_in_order(call);
    case Operation::destroy_qp:
      // During this time the adapter still sends requests that were posted before.
      call.process.provider().await_command();
      return destroy<ibv_qp>(call, Kind::qp, &sim::SimProvider::destroy_qp);
    case Operation::attach_mcast:
      return change_group(call, &sim::SimProvider::attach_mcast);
    case Operation::detach_mcast:
      return change_group(call, &sim::SimProvider::detach_mcast);
    case Operation::create_ah:
      return create_ah(call);
    case Operation::destroy_ah:
      return destroy<ibv_ah>(call, Kind::ah, &sim::SimProvider::destroy_ah);
    default:
      return ENOSYS;
  }
}

}  // namespace verbscope::simulate
