// The control path of completion queues, their channels, shared receive queues, and asynchronous events.
#include <fcntl.h>

#include <bit>
#include <cerrno>
#include <climits>
#include <utility>

#include "nic_sim/device/polling.hpp"
#include "nic_sim/device/provider.hpp"
#include "nic_sim/host/event_channel.hpp"
#include "verbs/qp_rules.hpp"
#include "wire/wqe.hpp"

namespace verbscope::sim {
namespace {

bool may_have_entries(int entries) {
  return entries >= 1 && entries <= kMaxCqEntries;
}

int places_for(int entries) {
  return static_cast<int>(std::bit_ceil(static_cast<unsigned>(entries)));
}

}  // namespace

ibv_comp_channel* SimProvider::create_comp_channel(ibv_context* context) {
  auto channel = std::make_unique<SimChannel>(nic_.engine(), nic_.profile().host.event_wakeup, pollable_);
  if (pollable_ && channel->fd < 0) return nullptr;  // errno is set
  channel->context = context;
  ++as_sim(context).open_objects;
  return channels_.emplace_back(std::move(channel)).get();
}

int SimProvider::destroy_comp_channel(ibv_comp_channel* channel) {
  if (channel->refcnt > 0) return EBUSY;
  --as_sim(channel->context).open_objects;
  static_cast<SimChannel*>(channel)->events.close();
  return 0;
}

ibv_cq* SimProvider::create_cq(ibv_context* context, int entries, ibv_comp_channel* channel, int vector) {
  if (!may_have_entries(entries) || vector < 0 || vector >= context->num_comp_vectors) return no_object(EINVAL);
  auto* cq = new SimCq{};
  cq->context = context;
  cq->cqe = places_for(entries);
  cq->channel = channel;
  if (channel != nullptr) ++channel->refcnt;
  ++as_sim(context).open_objects;
  return cq->verbs();
}

ibv_cq_ex* SimProvider::create_cq_ex(ibv_context* context, ibv_cq_init_attr_ex* attr) {
  constexpr std::uint32_t kMasks = IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD;
  const std::uint32_t flags = (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) != 0 ? attr->flags : 0;
  if ((attr->comp_mask & ~kMasks) != 0 || (flags & ~std::uint32_t{IBV_CREATE_CQ_ATTR_SINGLE_THREADED}) != 0 ||
      (attr->wc_flags & ~kReadableFields) != 0) {
    return no_object(EOPNOTSUPP);
  }
  if ((attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD) != 0 && as_sim(attr->parent_domain).parent == nullptr) {
    return no_object(EINVAL);
  }
  if (attr->cqe > kMaxCqEntries || attr->comp_vector > INT_MAX) return no_object(EINVAL);
  ibv_cq* const made =
      create_cq(context, static_cast<int>(attr->cqe), attr->channel, static_cast<int>(attr->comp_vector));
  if (made == nullptr) return nullptr;
  SimCq& cq = as_sim(made);
  cq.cq_context = attr->cq_context;
  cq.single_threaded = (flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED) != 0;
  set_poll_functions(cq, attr->wc_flags);
  return &cq;
}

// A command to the adapter, as a registration: completions arrive meanwhile.
int SimProvider::resize_cq(ibv_cq* cq, int entries) {
  await_command();
  if (!may_have_entries(entries) || as_sim(cq).waiting() > static_cast<std::uint64_t>(entries)) return EINVAL;
  cq->cqe = places_for(entries);
  return 0;
}

int SimProvider::destroy_cq(ibv_cq* cq) {
  SimCq& sim = as_sim(cq);
  if (sim.users > 0) return EBUSY;
  if (cq->channel != nullptr) {
    static_cast<SimChannel*>(cq->channel)->events.forget([cq](const ibv_cq* of) { return of == cq; });
    --cq->channel->refcnt;
    cq->channel = nullptr;
  }
  forget_events(*cq->context, cq);
  --as_sim(cq->context).open_objects;
  sim.arming = Arming{};
  sim.places.resize(1);
  retired_cqs_.emplace_back(&sim);
  return 0;
}

ibv_srq* SimProvider::create_srq(ibv_pd* pd, ibv_srq_init_attr* attr) {
  const ibv_srq_attr& requested = attr->attr;
  if (requested.max_wr < 1 || requested.max_wr > kMaxQueueDepth || requested.max_sge > kMaxSge)
    return no_object(EINVAL);
  SimSrq* srq = srqs_.emplace_back(std::make_unique<SimSrq>()).get();
  srq->context = pd->context;
  srq->pd = pd;
  srq->srq_context = attr->srq_context;
  srq->queue.resize(requested.max_wr, requested.max_sge, requested.max_wr + 1, kSrqNextSegment);
  nic_.srqs().add(*srq);
  ++as_sim(pd).users;
  return srq;
}

int SimProvider::modify_srq(ibv_srq* verbs_srq, ibv_srq_attr* attr, int mask) {
  SimSrq& srq = as_sim(verbs_srq);
  const bool resizes = (mask & IBV_SRQ_MAX_WR) != 0, limits = (mask & IBV_SRQ_LIMIT) != 0;
  const std::uint32_t depth = resizes ? attr->max_wr : srq.queue.depth;
  if ((mask & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT)) != 0 || depth < 1 || depth > kMaxQueueDepth ||
      srq.queue.posted - srq.queue.used > depth || (limits && attr->srq_limit > depth)) {
    return EINVAL;
  }
  if (resizes) srq.queue.change_depth(depth, depth + 1);
  if (limits) srq.limit = attr->srq_limit;
  return 0;
}

int SimProvider::query_srq(ibv_srq* srq, ibv_srq_attr* attr) {
  const RecvQueue& queue = as_sim(srq).queue;
  *attr = ibv_srq_attr{.max_wr = queue.depth, .max_sge = queue.max_sge, .srq_limit = as_sim(srq).limit};
  return 0;
}

int SimProvider::destroy_srq(ibv_srq* srq) {
  SimSrq& sim = as_sim(srq);
  if (sim.users > 0) return EBUSY;
  forget_events(*srq->context, srq);
  nic_.srqs().remove(sim);
  if (sim.xrcd != nullptr) {
    --sim.xrcd->users;
    --as_sim(sim.cq).users;
  }
  --as_sim(srq->pd).users;
  return 0;
}

// As the kernel, which drops the events of an object that is destroyed. All objects are the first member of
// ibv_async_event::element, which is a union.
void SimProvider::forget_events(ibv_context& context, const void* object) {
  as_sim(&context).async_events.forget([object](const ibv_async_event& event) { return event.element.cq == object; });
}

int SimProvider::get_async_event(ibv_context* context, ibv_async_event* event) {
  auto& events = as_sim(context).async_events;
  SimThread* const thread = nic_.running_thread();
  if (thread != nullptr) thread->sync();
  const bool waits = thread != nullptr && (events.fd() < 0 || (fcntl(events.fd(), F_GETFL) & O_NONBLOCK) == 0);
  const auto got = waits ? events.await(*thread, Picos::max()) : events.take(nic_.engine().now());
  if (!got) {
    errno = EAGAIN;
    return -1;
  }
  *event = *got;
  return 0;
}

void SimProvider::ack_async_event(ibv_async_event* event) {
  switch (event->event_type) {
    case IBV_EVENT_CQ_ERR:
      ++event->element.cq->async_events_completed;
      break;
    case IBV_EVENT_SRQ_LIMIT_REACHED:
      ++event->element.srq->events_completed;
      break;
    default:  // all others that the device has are of QPs
      ++event->element.qp->events_completed;
  }
}

}  // namespace verbscope::sim
