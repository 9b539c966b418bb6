// The functions of libibverbs for completion channels, completion queues, shared receive queues, and their events.
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>

#include "simulate/preload/exported.hpp"
#include "simulate/preload/objects.hpp"
#include "simulate/preload/waiting.hpp"

namespace verbscope::simulate {
namespace {

// An event of an object, whose count of these is `completed`, is acknowledged.
void acknowledge(std::uint32_t& completed, std::uint32_t count) {
  __atomic_fetch_add(&completed, count, __ATOMIC_SEQ_CST);
  wake(&completed, kAll);
}

ibv_cq* create_cq(ibv_context* context, const ibv_cq_init_attr_ex& attr, bool extended) {
  Cq& cq = *new Cq;
  cq.context = context;
  cq.channel = attr.channel;
  cq.cq_context = attr.cq_context;
  prepare_waits(cq);
  ibv_pd* const domain = (attr.comp_mask & IBV_CQ_INIT_ATTR_MASK_PD) != 0 ? attr.parent_domain : nullptr;
  Request request(Operation::create_cq);
  request.put(&cq).put(own(context).handle).put(handle_of(static_cast<CompChannel*>(attr.channel)));
  const int error = request.put(handle_of(domain)).put(attr).put(extended).ask();
  if (error != 0) return refused<ibv_cq>(&cq, error);
  cq.handle = request.get<std::uint32_t>();
  cq.cqe = request.get<int>();
  if (attr.channel != nullptr) ++attr.channel->refcnt;
  if (extended) set_poll_functions(cq, attr.wc_flags);
  return verbs(cq);
}

ibv_cq_ex* create_cq_ex(ibv_context* context, ibv_cq_init_attr_ex* attr) {
  return reinterpret_cast<ibv_cq_ex*>(create_cq(context, *attr, true));
}

ibv_srq* create_srq_ex(ibv_context* context, ibv_srq_init_attr_ex* attr) {
  auto* srq = new Srq{};
  const auto given = [attr](std::uint32_t flag, auto* object) {
    return (attr->comp_mask & flag) != 0 ? handle_of(object) : 0;
  };
  srq->context = context;
  srq->srq_context = attr->srq_context;
  srq->pd = (attr->comp_mask & IBV_SRQ_INIT_ATTR_PD) != 0 ? attr->pd : nullptr;
  prepare_waits(*srq);
  Request request(Operation::create_srq);
  request.put(static_cast<ibv_srq*>(srq)).put(own(context).handle).put(given(IBV_SRQ_INIT_ATTR_PD, attr->pd));
  request.put(given(IBV_SRQ_INIT_ATTR_XRCD, static_cast<Xrcd*>(attr->xrcd))).put(given(IBV_SRQ_INIT_ATTR_CQ, attr->cq));
  const int error = request.put(*attr).ask();
  if (error != 0) return refused<ibv_srq>(srq, error);
  srq->handle = request.get<std::uint32_t>();
  srq->number = request.get<std::uint32_t>();
  attr->attr = request.get<ibv_srq_attr>();
  return srq;
}

int get_srq_num(ibv_srq* srq, std::uint32_t* number) {
  *number = own(srq).number;
  return 0;
}

}  // namespace

void await_acknowledged(const std::uint32_t& completed, const std::atomic<std::uint32_t>& got) {
  wait_until(&completed, kNever, [&] { return __atomic_load_n(&completed, __ATOMIC_SEQ_CST) == got; });
}

void set_queue_calls(Context& context) {
  context.create_cq_ex = &create_cq_ex;
  context.create_srq_ex = &create_srq_ex;
  context.get_srq_num = &get_srq_num;
}

}  // namespace verbscope::simulate

using namespace verbscope::simulate;

EXPORTED ibv_comp_channel* ibv_create_comp_channel(ibv_context* context) {
  auto* channel = new CompChannel{};
  channel->context = context;
  channel->fd = eventfd(0, EFD_CLOEXEC);
  if (channel->fd < 0) return made(channel, errno);
  const int fd = channel->fd;
  CompChannel* const created = create(Operation::create_channel, channel, own(context).handle, fd);
  if (created == nullptr) close(fd);
  return created;
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
  if (entries < 1 || vector < 0) return no_object(EINVAL);
  ibv_cq_init_attr_ex attr{};
  attr.cqe = static_cast<std::uint32_t>(entries);
  attr.cq_context = cq_context;
  attr.channel = channel;
  attr.comp_vector = static_cast<std::uint32_t>(vector);
  return create_cq(context, attr, false);
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
  await_acknowledged(cq->comp_events_completed, own(cq).got);
  await_acknowledged(cq->async_events_completed, own(cq).async_got);
  delete &own(cq);
  return 0;
}

EXPORTED int ibv_get_cq_event(ibv_comp_channel* channel, ibv_cq** cq, void** cq_context) {
  Request request(Operation::get_cq_event);
  const int error = request.put(static_cast<CompChannel*>(channel)->handle).ask();
  Cq* const of = request.get<Cq*>();  // null on errors
  if (of == nullptr) {
    errno = error;
    return -1;
  }
  ++of->got;
  *cq = verbs(*of);
  *cq_context = of->cq_context;
  return 0;
}

EXPORTED void ibv_ack_cq_events(ibv_cq* cq, unsigned count) {
  acknowledge(cq->comp_events_completed, count);
}

EXPORTED ibv_srq* ibv_create_srq(ibv_pd* pd, ibv_srq_init_attr* attr) {
  ibv_srq_init_attr_ex all{};
  all.srq_context = attr->srq_context;
  all.attr = attr->attr;
  all.comp_mask = IBV_SRQ_INIT_ATTR_PD;
  all.pd = pd;
  ibv_srq* const srq = create_srq_ex(pd->context, &all);
  if (srq != nullptr) attr->attr = all.attr;
  return srq;
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
  const int error = ask(Operation::destroy_srq, srq->handle);
  if (error != 0) return error;
  await_acknowledged(srq->events_completed, own(srq).got);
  delete &own(srq);
  return 0;
}

EXPORTED int ibv_get_async_event(ibv_context* context, ibv_async_event* event) {
  Request request(Operation::get_async_event);
  const int error = request.put(own(context).handle).ask();
  if (error != 0) {
    errno = error;
    return -1;
  }
  *event = request.get<ibv_async_event>();
  switch (event->event_type) {
    case IBV_EVENT_CQ_ERR:
      ++own(event->element.cq).async_got;
      break;
    case IBV_EVENT_SRQ_LIMIT_REACHED:
      ++own(event->element.srq).got;
      break;
    default:  // all others that the device has are of QPs
      ++own(event->element.qp).got;
  }
  return 0;
}

EXPORTED void ibv_ack_async_event(ibv_async_event* event) {
  switch (event->event_type) {
    case IBV_EVENT_CQ_ERR:
      return acknowledge(event->element.cq->async_events_completed, 1);
    case IBV_EVENT_SRQ_LIMIT_REACHED:
      return acknowledge(event->element.srq->events_completed, 1);
    default:
      return acknowledge(event->element.qp->events_completed, 1);
  }
}
