#include "nic_sim/nic/events.hpp"

#include <algorithm>
#include <cerrno>

#include "nic_sim/device/mmio.hpp"
#include "nic_sim/device/provider.hpp"
#include "nic_sim/device/provider_limits.hpp"
#include "nic_sim/host/sim_node.hpp"
#include "wire/event.hpp"

namespace verbscope {
namespace sim {
namespace {

// The manual page of ibv_req_notify_cq: a failed completion counts as solicited, a successful send never does.
bool wanted(Notify asked, const Completion& completion) {
  if (asked == Notify::any) return true;
  return asked == Notify::solicited && (completion.solicited || completion.status != IBV_WC_SUCCESS);
}

// The event: an entry for the event queue and an interrupt, both behind the CQE on the link.
void raise(Nic& nic, SimCq& cq) {
  cq.arming = Arming{};
  nic.bus().dma_write(0, kEventQueueEntry.value);
  const Picos at = nic.bus().dma_write(0, kInterruptMessage.value);
  if (cq.channel == nullptr) return;
  SimChannel& channel = *static_cast<SimChannel*>(cq.channel);
  channel.pending.push_back({&cq, at});
  for (SimThread* sleeper : channel.sleepers) sleeper->rouse_at(at);
}

void doorbell_arrives(void* object, std::uint64_t) {
  SimCq& cq = *static_cast<SimCq*>(object);
  cq.arming.at_nic = cq.arming.asked != Notify::none;
  if (cq.arming.met) raise(*static_cast<SimContext*>(cq.context)->nic, cq);
}

}  // namespace

void meet(Nic& nic, SimCq& cq, const Completion& completion) {
  if (!wanted(cq.arming.asked, completion)) return;
  if (cq.arming.at_nic) {
    raise(nic, cq);
  } else {
    cq.arming.met = true;
  }
}

int req_notify_cq(ibv_cq* verbs_cq, int solicited_only) {
  SimCq& cq = *static_cast<SimCq*>(verbs_cq);
  Nic& nic = *static_cast<SimContext*>(cq.context)->nic;
  const Picos departed = ring_arm_doorbell(nic, nic.running_thread());
  cq.arming.asked = std::max(cq.arming.asked, solicited_only != 0 ? Notify::solicited : Notify::any);
  // Completions that are on their way to memory are new to the program.
  for (std::uint64_t n = cq.written; n > cq.polled && cq.at(n - 1).visible > nic.engine().now(); --n) {
    if (wanted(cq.arming.asked, cq.at(n - 1))) cq.arming.met = true;
  }
  nic.engine().schedule(departed + nic.bus().propagation(), &doorbell_arrives, &cq);
  return 0;
}

ibv_comp_channel* SimProvider::create_comp_channel(ibv_context* context) {
  auto* channel = new SimChannel{};
  channel->context = context;
  channel->fd = -1;
  channel->nic = &nic_;
  ++as_sim(context).open_objects;
  return channel;
}

int SimProvider::destroy_comp_channel(ibv_comp_channel* channel) {
  if (channel->refcnt > 0) return EBUSY;
  --as_sim(channel->context).open_objects;
  delete static_cast<SimChannel*>(channel);
  return 0;
}

}  // namespace sim

ibv_cq* SimNode::await_event(ibv_comp_channel* verbs_channel, Nanos timeout) const {
  sim::SimChannel& channel = *static_cast<sim::SimChannel*>(verbs_channel);
  const Picos deadline = thread_->clock() + timeout;
  bool slept = false;
  thread_->sync();
  while (channel.pending.empty() || channel.pending.front().at > thread_->clock()) {
    if (thread_->clock() >= deadline) return sim::fail_with<ibv_cq>(ETIMEDOUT);
    channel.sleepers.push_back(thread_);
    thread_->sleep(channel.pending.empty() ? deadline : std::min(deadline, channel.pending.front().at));
    std::erase(channel.sleepers, thread_);
    slept = true;
  }
  ibv_cq* const cq = channel.pending.front().cq;
  channel.pending.pop_front();
  if (slept) thread_->idle_until(thread_->clock() + channel.nic->profile().host.event_wakeup);
  return cq;
}

}  // namespace verbscope
