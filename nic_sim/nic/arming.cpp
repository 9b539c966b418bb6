#include "nic_sim/nic/arming.hpp"

#include <algorithm>

#include "nic_sim/host/event_channel.hpp"
#include "nic_sim/nic/nic.hpp"
#include "wire/event.hpp"

namespace verbscope::sim {
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
  if (cq.channel != nullptr) static_cast<SimChannel*>(cq.channel)->interrupt(&cq, at);
}

void doorbell_arrives(void* object, std::uint64_t) {
  SimCq& cq = *static_cast<SimCq*>(object);
  cq.arming.at_nic = cq.arming.asked != Notify::none;
  if (cq.arming.met) raise(*static_cast<SimContext*>(cq.context)->nic, cq);
}

}  // namespace

void arm(Nic& nic, SimCq& cq, Notify asked, Picos when) {
  cq.arming.asked = std::max(cq.arming.asked, asked);
  // Completions that are on their way to memory are new to the program.
  for (std::uint64_t n = cq.written; n > cq.polled && cq.at(n - 1).visible > nic.engine().now(); --n) {
    if (wanted(cq.arming.asked, cq.at(n - 1))) cq.arming.met = true;
  }
  nic.engine().schedule(when, &doorbell_arrives, &cq);
}

void meet(Nic& nic, SimCq& cq, const Completion& completion) {
  if (!wanted(cq.arming.asked, completion)) return;
  if (cq.arming.at_nic) {
    raise(nic, cq);
  } else {
    cq.arming.met = true;
  }
}

}  // namespace verbscope::sim
