// Operations on the control path: those of SimProvider, with the objects of the process by their numbers.
#include <algorithm>
#include <cerrno>

#include "nic_sim/nic/objects.hpp"
#include "simulate/server/calls.hpp"

namespace verbscope::simulate {
namespace {

// The next argument as an object of this kind; null if the program has none of this number.
template <class Object>
Object* object(const Call& call, Kind kind) {
  return call.process.find<Object>(kind, call.in.get<std::uint32_t>());
}

// Tells the number of a new object, or the errno with which it was refused.
template <class Object>
int tell(const Call& call, Kind kind, Object* made) {
  if (made == nullptr) return errno;
  call.out.put(call.process.add(kind, made));
  return 0;
}

// Destroys the object whose number is the next argument.
template <class Object>
int destroy(const Call& call, Kind kind, int (sim::SimProvider::*function)(Object*)) {
  const auto handle = call.in.get<std::uint32_t>();
  auto* const found = call.process.find<Object>(kind, handle);
  if (found == nullptr) return EINVAL;
  const int error = (call.process.provider().*function)(found);
  if (error == 0) call.process.remove(handle);
  return error;
}

int open_device(const Call& call) {
  const auto fd = call.in.get<int>();
  ibv_context* const context = call.process.provider().open("sim0");
  if (context == nullptr) return errno;
  const int copy = call.process.copy_fd(fd);
  if (copy < 0) return errno;
  sim::as_sim(context).async_events.show_by(copy);
  context->async_fd = copy;
  sim::as_sim(context).space = &call.process.memory();
  call.out.put(call.process.add(Kind::context, context));
  call.out.put(context->num_comp_vectors);
  return 0;
}

template <class Answer, class Query>
int query(const Call& call, Query&& ask) {
  auto* const context = object<ibv_context>(call, Kind::context);
  if (context == nullptr) return EINVAL;
  Answer answer{};
  const int error = ask(call.process.provider(), context, answer);
  if (error == 0) call.out.put(answer);
  return error;
}

int query_gid(sim::SimProvider& provider, ibv_context* context, const Call& call, ibv_gid_entry& entry) {
  const auto port = call.in.get<std::uint8_t>();
  return provider.query_gid(context, port, call.in.get<std::uint32_t>(), &entry);
}

int query_pkey(sim::SimProvider& provider, ibv_context* context, const Call& call, __be16& pkey) {
  const auto port = call.in.get<std::uint8_t>();
  return provider.query_pkey(context, port, call.in.get<int>(), &pkey) == 0 ? 0 : errno;
}

int query_clock(ibv_context* context, std::uint64_t& cycles) {
  ibv_values_ex values{.comp_mask = IBV_VALUES_MASK_RAW_CLOCK, .raw_clock = {}};
  const int error = ibv_query_rt_values_ex(context, &values);
  cycles = static_cast<std::uint64_t>(values.raw_clock.tv_nsec);
  return error;
}

int alloc_parent_domain(const Call& call) {
  auto* const pd = object<ibv_pd>(call, Kind::pd);
  const auto td = call.in.get<std::uint32_t>();
  auto* const thread_domain = call.process.find<ibv_td>(Kind::td, td);
  if (pd == nullptr || (td != 0 && thread_domain == nullptr)) return EINVAL;
  return tell(call, Kind::pd, call.process.provider().alloc_parent_domain(pd, thread_domain));
}

int reg_mr(const Call& call) {
  auto* const pd = object<ibv_pd>(call, Kind::pd);
  auto* const address = call.in.get<void*>();
  const auto length = call.in.get<std::size_t>();
  const auto iova = call.in.get<std::uint64_t>();
  const int access = call.in.get<int>();
  if (pd == nullptr) return EINVAL;
  // As the kernel, which pins the pages.
  const char* const last = static_cast<const char*>(address) + (length == 0 ? 0 : length - 1);
  if (length > 0 && (!call.process.memory().accessible(address) || !call.process.memory().accessible(last))) return EFAULT;
  ibv_mr* const mr = call.process.provider().reg_mr_iova(pd, address, length, iova, access);
  const int error = tell(call, Kind::mr, mr);
  if (error != 0) return error;
  call.out.put(mr->lkey);
  call.out.put(mr->rkey);
  return 0;
}

int rereg_mr(const Call& call) {
  auto* const mr = object<ibv_mr>(call, Kind::mr);
  const int flags = call.in.get<int>();
  auto* const pd = object<ibv_pd>(call, Kind::pd);
  auto* const address = call.in.get<void*>();
  const auto length = call.in.get<std::size_t>();
  const int access = call.in.get<int>();
  const int code = mr == nullptr ? IBV_REREG_MR_ERR_INPUT : call.process.provider().rereg_mr(mr, flags, pd, address, length, access);
  if (code == 0) return 0;
  call.out.put(code);
  return mr == nullptr ? EINVAL : errno;
}

int alloc_mw(const Call& call) {
  auto* const pd = object<ibv_pd>(call, Kind::pd);
  if (pd == nullptr) return EINVAL;
  ibv_mw* const mw = call.process.provider().alloc_mw(pd, call.in.get<ibv_mw_type>());
  const int error = tell(call, Kind::mw, mw);
  if (error == 0) call.out.put(mw->rkey);
  return error;
}

int create_channel(const Call& call) {
  auto* const context = object<ibv_context>(call, Kind::context);
  const auto fd = call.in.get<int>();
  if (context == nullptr) return EINVAL;
  ibv_comp_channel* const channel = call.process.provider().create_comp_channel(context);
  if (channel == nullptr) return errno;
  const int copy = call.process.copy_fd(fd);
  if (copy < 0) return errno;
  static_cast<sim::SimChannel*>(channel)->events.show_by(copy);
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
    cq = call.process.provider().create_cq(context, static_cast<int>(attr.cqe), channel, static_cast<int>(attr.comp_vector));
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
  ibv_srq_init_attr attr{.srq_context = call.in.get<void*>(), .attr = {}};
  auto* const pd = object<ibv_pd>(call, Kind::pd);
  attr.attr = call.in.get<ibv_srq_attr>();
  if (pd == nullptr) return EINVAL;
  const int error = tell(call, Kind::srq, call.process.provider().create_srq(pd, &attr));
  if (error == 0) call.out.put(attr.attr);
  return error;
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

int create_qp(const Call& call) {
  auto* const own = call.in.get<void*>();
  auto* const pd = object<ibv_pd>(call, Kind::pd);
  ibv_qp_init_attr_ex attr{};
  attr.send_cq = object<ibv_cq>(call, Kind::cq);
  attr.recv_cq = object<ibv_cq>(call, Kind::cq);
  attr.srq = object<ibv_srq>(call, Kind::srq);
  attr.cap = call.in.get<ibv_qp_cap>();
  attr.qp_type = call.in.get<ibv_qp_type>();
  attr.sq_sig_all = call.in.get<int>();
  attr.send_ops_flags = call.in.get<std::uint64_t>();
  attr.qp_context = own;
  attr.pd = pd;
  attr.comp_mask = IBV_QP_INIT_ATTR_PD | (attr.send_ops_flags != 0 ? IBV_QP_INIT_ATTR_SEND_OPS_FLAGS : 0);
  if (pd == nullptr || attr.send_cq == nullptr || attr.recv_cq == nullptr) return EINVAL;
  ibv_qp* const qp = call.process.provider().create_qp_ex(pd->context, &attr);
  const int error = tell(call, Kind::qp, qp);
  if (error != 0) return error;
  qp->qp_context = own;
  call.out.put(qp->qp_num);
  call.out.put(sim::as_sim(qp).caps);
  return 0;
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

int create_ah(const Call& call) {
  auto* const pd = object<ibv_pd>(call, Kind::pd);
  auto attr = call.in.get<ibv_ah_attr>();
  return pd == nullptr ? EINVAL : tell(call, Kind::ah, call.process.provider().create_ah(pd, &attr));
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

int execute_control(Operation operation, const Call& call) {
  sim::SimProvider& provider = call.process.provider();
  switch (operation) {
    case Operation::open_device:
      return open_device(call);
    case Operation::close_device:
      return destroy<ibv_context>(call, Kind::context, &sim::SimProvider::close);
    case Operation::query_device:
      return query<ibv_device_attr_ex>(call, [](auto& of, ibv_context* context, ibv_device_attr_ex& attr) {
        return of.query_device_ex(context, nullptr, &attr, sizeof attr);
      });
    case Operation::query_port:
      return query<ibv_port_attr>(call, [&call](auto& of, ibv_context* context, ibv_port_attr& attr) {
        return of.query_port(context, call.in.get<std::uint8_t>(), &attr);
      });
    case Operation::query_gid:
      return query<ibv_gid_entry>(call, [&call](auto& of, ibv_context* context, ibv_gid_entry& entry) { return query_gid(of, context, call, entry); });
    case Operation::query_pkey:
      return query<__be16>(call, [&call](auto& of, ibv_context* context, __be16& pkey) { return query_pkey(of, context, call, pkey); });
    case Operation::query_clock:
      return query<std::uint64_t>(call, [](auto&, ibv_context* context, std::uint64_t& cycles) { return query_clock(context, cycles); });
    case Operation::alloc_pd: {
      auto* const context = object<ibv_context>(call, Kind::context);
      return context == nullptr ? EINVAL : tell(call, Kind::pd, provider.alloc_pd(context));
    }
    case Operation::dealloc_pd:
      return destroy<ibv_pd>(call, Kind::pd, &sim::SimProvider::dealloc_pd);
    case Operation::alloc_td: {
      auto* const context = object<ibv_context>(call, Kind::context);
      return context == nullptr ? EINVAL : tell(call, Kind::td, provider.alloc_td(context));
    }
    case Operation::dealloc_td:
      return destroy<ibv_td>(call, Kind::td, &sim::SimProvider::dealloc_td);
    case Operation::alloc_parent_domain:
      return alloc_parent_domain(call);
    case Operation::reg_mr:
      return reg_mr(call);
    case Operation::rereg_mr:
      return rereg_mr(call);
    case Operation::dereg_mr:
      return destroy<ibv_mr>(call, Kind::mr, &sim::SimProvider::dereg_mr);
    case Operation::alloc_mw:
      return alloc_mw(call);
    case Operation::dealloc_mw:
      return destroy<ibv_mw>(call, Kind::mw, &sim::SimProvider::dealloc_mw);
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
    case Operation::create_qp:
      return create_qp(call);
    case Operation::modify_qp:
      return modify_qp(call);
    case Operation::query_qp:
      return query_qp(call);
    case Operation::destroy_qp:
      return destroy<ibv_qp>(call, Kind::qp, &sim::SimProvider::destroy_qp);
    case Operation::create_ah:
      return create_ah(call);
    case Operation::destroy_ah:
      return destroy<ibv_ah>(call, Kind::ah, &sim::SimProvider::destroy_ah);
    case Operation::get_async_event:
      return get_async_event(call);
    default:
      return ENOSYS;
  }
}

}  // namespace verbscope::simulate
