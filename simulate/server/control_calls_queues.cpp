// Operations on completion channels, completion queues, shared receive queues, and their events.
#include "simulate/server/control.hpp"

namespace verbscope::simulate {
namespace {

int create_channel(const Call& call) {
  auto* const context = object<ibv_context>(call, Kind::context);
  const auto fd = call.in.get<int>();
  if (context == nullptr) return EINVAL;
  ibv_comp_channel* const channel = call.process.provider().create_comp_channel(context);
  if (channel == nullptr) return errno;
  const int copy = call.process.copy_fd(fd);
  if (copy < 0) return errno;
  show_by(call, static_cast<sim::SimChannel*>(channel)->events, copy);
  channel->fd = copy;
  return tell(call, Kind::channel, channel);
}

int create_cq(const Call& call) {
  auto* const own = call.in.get<void*>();  // the program's structure
  auto* const context = object<ibv_context>(call, Kind::context);
  auto* const channel = object<ibv_comp_channel>(call, Kind::channel);
  auto* const domain = object<ibv_pd>(call, Kind::pd);
  auto attr = call.in.get<ibv_cq_init_attr_ex>();
  if (context == nullptr) return EINVAL;
  attr.channel = channel;
  attr.parent_domain = domain;
  ibv_cq* cq = nullptr;
  if (call.in.get<bool>()) {
    if ((attr.comp_mask & IBV_CQ_INIT_ATTR_MASK_PD) != 0 && domain == nullptr) return EINVAL;
    ibv_cq_ex* const extended = call.process.provider().create_cq_ex(context, &attr);
    cq = extended == nullptr ? nullptr : ibv_cq_ex_to_cq(extended);
  } else {
    cq = call.process.provider().create_cq(context, static_cast<int>(attr.cqe), channel,
                                           static_cast<int>(attr.comp_vector));
  }
  const int error = tell(call, Kind::cq, cq);
  if (error != 0) return error;
  cq->cq_context = own;
  call.out.put(cq->cqe);
  return 0;
}

int resize_cq(const Call& call) {
  auto* const cq = object<ibv_cq>(call, Kind::cq);
  if (cq == nullptr) return EINVAL;
  const int error = call.process.provider().resize_cq(cq, call.in.get<int>());
  if (error == 0) call.out.put(cq->cqe);
  return error;
}

int create_srq(const Call& call) {
  auto* const own = call.in.get<void*>();
  auto* const context = object<ibv_context>(call, Kind::context);
  auto* const pd = object<ibv_pd>(call, Kind::pd);
  auto* const xrcd = object<ibv_xrcd>(call, Kind::xrcd);
  auto* const cq = object<ibv_cq>(call, Kind::cq);
  auto attr = call.in.get<ibv_srq_init_attr_ex>();
  const auto lacks = [&attr](std::uint32_t flag, const void* given) {
    return (attr.comp_mask & flag) != 0 && given == nullptr;
  };
  if (context == nullptr || lacks(IBV_SRQ_INIT_ATTR_PD, pd) || lacks(IBV_SRQ_INIT_ATTR_XRCD, xrcd) ||
      lacks(IBV_SRQ_INIT_ATTR_CQ, cq)) {
    return EINVAL;
  }
  attr.srq_context = own;
  attr.pd = pd;
  attr.xrcd = xrcd;
  attr.cq = cq;
  ibv_srq* const srq = call.process.provider().create_srq_ex(&attr);
  const int error = tell(call, Kind::srq, srq);
  if (error != 0) return error;
  call.out.put(sim::as_sim(srq).number);
  call.out.put(attr.attr);
  return 0;
}

int modify_srq(const Call& call) {
  auto* const srq = object<ibv_srq>(call, Kind::srq);
  auto attr = call.in.get<ibv_srq_attr>();
  return srq == nullptr ? EINVAL : call.process.provider().modify_srq(srq, &attr, call.in.get<int>());
}

int query_srq(const Call& call) {
  auto* const srq = object<ibv_srq>(call, Kind::srq);
  ibv_srq_attr attr{};
  const int error = srq == nullptr ? EINVAL : call.process.provider().query_srq(srq, &attr);
  if (error == 0) call.out.put(attr);
  return error;
}

int get_async_event(const Call& call) {
  auto* const context = object<ibv_context>(call, Kind::context);
  ibv_async_event event{};
  if (context == nullptr) return EINVAL;
  if (call.process.provider().get_async_event(context, &event) != 0) return errno;
  call.process.provider().ack_async_event(&event);
  // The program knows the object by its own structure.
  switch (event.event_type) {
    case IBV_EVENT_CQ_ERR:
      event.element.cq = static_cast<ibv_cq*>(event.element.cq->cq_context);
      break;
    case IBV_EVENT_SRQ_LIMIT_REACHED:
      event.element.srq = static_cast<ibv_srq*>(event.element.srq->srq_context);
      break;
    default:
      event.element.qp = static_cast<ibv_qp*>(event.element.qp->qp_context);
  }
  call.out.put(event);
  return 0;
}

}  // namespace

int execute_queues(Operation operation, const Call& call) {
  switch (operation) {
    case Operation::create_channel:
      return create_channel(call);
    case Operation::destroy_channel:
      return destroy<ibv_comp_channel>(call, Kind::channel, &sim::SimProvider::destroy_comp_channel);
    case Operation::create_cq:
      return create_cq(call);
    case Operation::resize_cq:
      return resize_cq(call);
    case Operation::destroy_cq:
      return destroy<ibv_cq>(call, Kind::cq, &sim::SimProvider::destroy_cq);
    case Operation::create_srq:
      return create_srq(call);
    case Operation::modify_srq:
      return modify_srq(call);
    case Operation::query_srq:
      return query_srq(call);
    case Operation::destroy_srq:
      return destroy<ibv_srq>(call, Kind::srq, &sim::SimProvider::destroy_srq);
    case Operation::get_async_event:
      return get_async_event(call);
    default:
      return ENOSYS;
  }
}

}  // namespace verbscope::simulate
