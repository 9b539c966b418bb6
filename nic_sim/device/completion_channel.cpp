// Completion events for programs: channels (control path) and ibv_req_notify_cq.
#include <cerrno>

#include "nic_sim/device/data_path.hpp"
#include "nic_sim/device/mmio.hpp"
#include "nic_sim/device/provider.hpp"
#include "nic_sim/host/event_channel.hpp"

namespace verbscope::sim {

int req_notify_cq(ibv_cq* verbs_cq, int solicited_only) {
  SimCq& cq = *static_cast<SimCq*>(verbs_cq);
  Nic& nic = *static_cast<SimContext*>(cq.context)->nic;
  const Picos departed = ring_arm_doorbell(nic, nic.running_thread());
  nic.completion_events().arm(cq, solicited_only != 0 ? Notify::solicited : Notify::any,
                              departed + nic.bus().propagation());
  return 0;
}

ibv_comp_channel* SimProvider::create_comp_channel(ibv_context* context) {
  auto* channel = new SimChannel{};
  channel->context = context;
  channel->fd = -1;
  channel->wakeup = nic_.profile().host.event_wakeup;
  ++as_sim(context).open_objects;
  return channel;
}

int SimProvider::destroy_comp_channel(ibv_comp_channel* channel) {
  if (channel->refcnt > 0) return EBUSY;
  --as_sim(channel->context).open_objects;
  delete static_cast<SimChannel*>(channel);
  return 0;
}

}  // namespace verbscope::sim
