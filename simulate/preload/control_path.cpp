// The functions of libibverbs that make, change and destroy verbs objects.
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cstring>

#include "simulate/preload/objects.hpp"

#undef ibv_reg_mr
#undef ibv_reg_mr_iova

#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace verbscope::simulate {
namespace {

void prepare_waits(auto& object) {
  pthread_mutex_init(&object.mutex, nullptr);
  pthread_cond_init(&object.cond, nullptr);
}

// The simulator's number of a thread domain has no place in libibverbs' structure.
struct Td : ibv_td {
  std::uint32_t handle = 0;
};

ibv_td* alloc_td(ibv_context* context, ibv_td_init_attr* attr) {
  if (attr->comp_mask != 0) {
    errno = EINVAL;
    return nullptr;
  }
  auto* td = new Td{};
  td->context = context;
  Request request(Operation::alloc_td);
  const int error = request.put(own(context).handle).ask();
  td->handle = request.get<std::uint32_t>();
  return made(td, error);
}

int dealloc_td(ibv_td* td) {
  return destroyed(Operation::dealloc_td, static_cast<Td*>(td));
}

ibv_pd* alloc_parent_domain(ibv_context* context, ibv_parent_domain_init_attr* attr) {
  if (attr->pd == nullptr || attr->pd->context != context || attr->comp_mask != 0) {
    errno = attr->comp_mask != 0 ? EOPNOTSUPP : EINVAL;
    return nullptr;
  }
  auto* pd = new ibv_pd{.context = context, .handle = 0};
  Request request(Operation::alloc_parent_domain);
  const int error = request.put(attr->pd->handle).put(handle_of(static_cast<Td*>(attr->td))).ask();
  pd->handle = request.get<std::uint32_t>();
  return made(pd, error);
}

ibv_mw* alloc_mw(ibv_pd* pd, ibv_mw_type type) {
  auto* mw = new ibv_mw{.context = pd->context, .pd = pd, .rkey = 0, .handle = 0, .type = type};
  Request request(Operation::alloc_mw);
  const int error = request.put(pd->handle).put(type).ask();
  mw->handle = request.get<std::uint32_t>();
  mw->rkey = request.get<std::uint32_t>();
  return made(mw, error);
}

int dealloc_mw(ibv_mw* mw) {
  return destroyed(Operation::dealloc_mw, mw);
}

int bind_mw(ibv_qp* qp, ibv_mw* mw, ibv_mw_bind* bind) {
  Request request(Operation::bind_mw);
  const int error = request.put(qp->handle).put(mw->handle).put(handle_of(bind->bind_info.mr)).put(*bind).ask();
  if (error == 0) mw->rkey = request.get<std::uint32_t>();
  return error;
}

ibv_cq* create(Cq& cq, ibv_context* context, const ibv_cq_init_attr_ex& attr, bool extended) {
  cq.context = context;
  cq.channel = attr.channel;
  cq.cq_context = attr.cq_context;
  prepare_waits(cq);
  Request request(Operation::create_cq);
  request.put(&cq).put(own(context).handle).put(handle_of(static_cast<CompChannel*>(attr.channel)));
  const int error = request.put(handle_of((attr.comp_mask & IBV_CQ_INIT_ATTR_MASK_PD) != 0 ? attr.parent_domain : nullptr)).put(attr).put(extended).ask();
  if (error != 0) return refused<ibv_cq>(&cq, error);
  cq.handle = request.get<std::uint32_t>();
  cq.cqe = request.get<int>();
  if (attr.channel != nullptr) ++attr.channel->refcnt;
  if (extended) set_poll_functions(cq, attr.wc_flags);
  return verbs(cq);
}

ibv_cq_ex* create_cq_ex(ibv_context* context, ibv_cq_init_attr_ex* attr) {
  return reinterpret_cast<ibv_cq_ex*>(create(*new Cq, context, *attr, true));
}

template <class Attributes>
ibv_qp* create(ibv_pd* pd, Attributes& attr, std::uint64_t operations) {
  auto* qp = new ibv_qp{};
  qp->context = pd->context;
  qp->qp_context = attr.qp_context;
  qp->pd = pd;
  qp->send_cq = attr.send_cq;
  qp->recv_cq = attr.recv_cq;
  qp->srq = attr.srq;
  qp->qp_type = attr.qp_type;
  prepare_waits(*qp);
  Request request(Operation::create_qp);
  request.put(qp).put(pd->handle).put(handle_of(attr.send_cq)).put(handle_of(attr.recv_cq)).put(handle_of(attr.srq));
  const int error = request.put(attr.cap).put(attr.qp_type).put(attr.sq_sig_all).put(operations).ask();
  if (error != 0) return made(qp, error);
  qp->handle = request.get<std::uint32_t>();
  qp->qp_num = request.get<std::uint32_t>();
  attr.cap = request.get<ibv_qp_cap>();
  return qp;
}

ibv_qp* create_qp_ex(ibv_context* context, ibv_qp_init_attr_ex* attr) {
  constexpr std::uint32_t kKnown = IBV_QP_INIT_ATTR_PD;
  if ((attr->comp_mask & ~kKnown) != 0 || (attr->comp_mask & IBV_QP_INIT_ATTR_PD) == 0 || attr->pd->context != context) {
    errno = (attr->comp_mask & ~kKnown) != 0 ? EOPNOTSUPP : EINVAL;
    return nullptr;
  }
  return create(attr->pd, *attr, 0);
}

ibv_srq* create_srq(ibv_pd* pd, ibv_srq_init_attr& attr) {
  auto* srq = new ibv_srq{};
  srq->context = pd->context;
  srq->srq_context = attr.srq_context;
  srq->pd = pd;
  prepare_waits(*srq);
  Request request(Operation::create_srq);
  const int error = request.put(srq).put(pd->handle).put(attr.attr).ask();
  if (error != 0) return made(srq, error);
  srq->handle = request.get<std::uint32_t>();
  attr.attr = request.get<ibv_srq_attr>();
  return srq;
}

ibv_mr* reg_mr(ibv_pd* pd, void* address, std::size_t length, std::uint64_t iova, int access) {
  auto* mr = new ibv_mr{.context = pd->context, .pd = pd, .addr = address, .length = length, .handle = 0, .lkey = 0, .rkey = 0};
  Request request(Operation::reg_mr);
  const int error = request.put(pd->handle).put(address).put(length).put(iova).put(access).ask();
  mr->handle = request.get<std::uint32_t>();
  mr->lkey = request.get<std::uint32_t>();
  mr->rkey = request.get<std::uint32_t>();
  return made(mr, error);
}

}  // namespace

void set_device_calls(Context& context);

void set_tables(Context& context) {
  set_device_calls(context);
  set_data_path(context.context.ops);
  context.context.ops.alloc_mw = &alloc_mw;
  context.context.ops.dealloc_mw = &dealloc_mw;
  context.context.ops.bind_mw = &bind_mw;
  context.create_cq_ex = &create_cq_ex;
  context.create_qp_ex = &create_qp_ex;
  context.alloc_td = &alloc_td;
  context.dealloc_td = &dealloc_td;
  context.alloc_parent_domain = &alloc_parent_domain;
}

}  // namespace verbscope::simulate

using namespace verbscope::simulate;

EXPORTED ibv_pd* ibv_alloc_pd(ibv_context* context) {
  auto* pd = new ibv_pd{.context = context, .handle = 0};
  Request request(Operation::alloc_pd);
  const int error = request.put(own(context).handle).ask();
  pd->handle = request.get<std::uint32_t>();
  return made(pd, error);
}

EXPORTED int ibv_dealloc_pd(ibv_pd* pd) {
  return destroyed(Operation::dealloc_pd, pd);
}

EXPORTED ibv_mr* ibv_reg_mr(ibv_pd* pd, void* address, size_t length, int access) {
  return reg_mr(pd, address, length, reinterpret_cast<std::uint64_t>(address), access);
}

EXPORTED ibv_mr* ibv_reg_mr_iova(ibv_pd* pd, void* address, size_t length, uint64_t iova, int access) {
  return reg_mr(pd, address, length, iova, access);
}

EXPORTED ibv_mr* ibv_reg_mr_iova2(ibv_pd* pd, void* address, size_t length, uint64_t iova, unsigned int access) {
  return reg_mr(pd, address, length, iova, static_cast<int>(access));
}

EXPORTED ibv_mr* ibv_reg_dmabuf_mr(ibv_pd*, uint64_t, size_t, uint64_t, int, int) {
  errno = EOPNOTSUPP;
  return nullptr;
}

EXPORTED int ibv_rereg_mr(ibv_mr* mr, int flags, ibv_pd* pd, void* address, size_t length, int access) {
  Request request(Operation::rereg_mr);
  const int error = request.put(mr->handle).put(flags).put(handle_of(pd)).put(address).put(length).put(access).ask();
  if (error != 0) {
    errno = error;
    return request.get<int>();
  }
  if ((flags & IBV_REREG_MR_CHANGE_PD) != 0) mr->pd = pd;
  if ((flags & IBV_REREG_MR_CHANGE_TRANSLATION) != 0) {
    mr->addr = address;
    mr->length = length;
  }
  return 0;
}

EXPORTED int ibv_dereg_mr(ibv_mr* mr) {
  return destroyed(Operation::dereg_mr, mr);
}

EXPORTED ibv_comp_channel* ibv_create_comp_channel(ibv_context* context) {
  auto* channel = new CompChannel{};
  channel->context = context;
  channel->fd = eventfd(0, EFD_CLOEXEC);
  if (channel->fd < 0) return made(channel, errno);
  Request request(Operation::create_channel);
  const int error = request.put(own(context).handle).put(channel->fd).ask();
  channel->handle = request.get<std::uint32_t>();
  return made(channel, error);
}

EXPORTED int ibv_destroy_comp_channel(ibv_comp_channel* channel) {
  if (channel->refcnt > 0) return EBUSY;
  const int fd = channel->fd;
  const int error = destroyed(Operation::destroy_channel, static_cast<CompChannel*>(channel));
  if (error == 0) close(fd);
  return error;
}

EXPORTED ibv_cq* ibv_create_cq(ibv_context* context, int entries, void* cq_context, ibv_comp_channel* channel,
                               int vector) {
  if (entries < 1 || vector < 0) {
    errno = EINVAL;
    return nullptr;
  }
  ibv_cq_init_attr_ex attr{};
  attr.cqe = static_cast<std::uint32_t>(entries);
  attr.cq_context = cq_context;
  attr.channel = channel;
  attr.comp_vector = static_cast<std::uint32_t>(vector);
  return create(*new Cq, context, attr, false);
}

EXPORTED int ibv_resize_cq(ibv_cq* cq, int entries) {
  Request request(Operation::resize_cq);
  const int error = request.put(cq->handle).put(entries).ask();
  if (error == 0) cq->cqe = request.get<int>();
  return error;
}

EXPORTED int ibv_destroy_cq(ibv_cq* cq) {
  ibv_comp_channel* const channel = cq->channel;
  const int error = ask(Operation::destroy_cq, cq->handle);
  if (error != 0) return error;
  if (channel != nullptr) --channel->refcnt;
  delete &own(cq);
  return 0;
}

EXPORTED int ibv_get_cq_event(ibv_comp_channel* channel, ibv_cq** cq, void** cq_context) {
  Request request(Operation::get_cq_event);
  const int error = request.put(static_cast<CompChannel*>(channel)->handle).ask();
  if (error != 0) {
    errno = error;
    return -1;
  }
  *cq = verbs(*request.get<Cq*>());
  *cq_context = (*cq)->cq_context;
  return 0;
}

EXPORTED void ibv_ack_cq_events(ibv_cq* cq, unsigned count) {
  cq->comp_events_completed += count;
}

EXPORTED ibv_srq* ibv_create_srq(ibv_pd* pd, ibv_srq_init_attr* attr) {
  return create_srq(pd, *attr);
}

EXPORTED int ibv_modify_srq(ibv_srq* srq, ibv_srq_attr* attr, int mask) {
  return ask(Operation::modify_srq, srq->handle, *attr, mask);
}

EXPORTED int ibv_query_srq(ibv_srq* srq, ibv_srq_attr* attr) {
  Request request(Operation::query_srq);
  const int error = request.put(srq->handle).ask();
  if (error == 0) *attr = request.get<ibv_srq_attr>();
  return error;
}

EXPORTED int ibv_destroy_srq(ibv_srq* srq) {
  return destroyed(Operation::destroy_srq, srq);
}

EXPORTED ibv_qp* ibv_create_qp(ibv_pd* pd, ibv_qp_init_attr* attr) {
  return create(pd, *attr, 0);
}

EXPORTED ibv_qp_ex* ibv_qp_to_qp_ex(ibv_qp*) {
  return nullptr;
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

EXPORTED int ibv_destroy_qp(ibv_qp* qp) {
  return destroyed(Operation::destroy_qp, qp);
}

EXPORTED ibv_ah* ibv_create_ah(ibv_pd* pd, ibv_ah_attr* attr) {
  auto* ah = new ibv_ah{.context = pd->context, .pd = pd, .handle = 0};
  Request request(Operation::create_ah);
  const int error = request.put(pd->handle).put(*attr).ask();
  ah->handle = request.get<std::uint32_t>();
  return made(ah, error);
}

EXPORTED int ibv_destroy_ah(ibv_ah* ah) {
  return destroyed(Operation::destroy_ah, ah);
}

EXPORTED int ibv_get_async_event(ibv_context* context, ibv_async_event* event) {
  Request request(Operation::get_async_event);
  const int error = request.put(own(context).handle).ask();
  if (error != 0) {
    errno = error;
    return -1;
  }
  *event = request.get<ibv_async_event>();
  return 0;
}

EXPORTED void ibv_ack_async_event(ibv_async_event*) {}

EXPORTED int ibv_fork_init() {
  return 0;
}
