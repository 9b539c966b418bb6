#include "nic_sim/nic/completion.hpp"

#include <algorithm>

#include "nic_sim/host/event_channel.hpp"
#include "wire/doorbell.hpp"

namespace verbscope::sim {
namespace {

// The manual page of ibv_req_notify_cq: a failed completion counts as solicited, a successful send never does.
bool wanted(Notify requested, const Completion& completion) {
  if (requested == Notify::any) return true;
  return requested == Notify::solicited && (completion.solicited || completion.status != IBV_WC_SUCCESS);
}

}  // namespace

// The event: an entry for the event queue and an interrupt, both behind the CQE on the link.
void CompletionEvents::raise(SimCq& cq) {
  cq.arming = Arming{};
  bus_.dma_write(0, kEventQueueEntry.value);
  const Picos at = bus_.dma_write(0, kInterruptMessage.value);
  if (cq.channel != nullptr) static_cast<SimChannel*>(cq.channel)->interrupt(&cq, at);
}

void CompletionEvents::doorbell_arrives(void* object, std::uint64_t argument) {
  SimCq& cq = *reinterpret_cast<SimCq*>(argument);
  cq.arming.at_nic = cq.arming.requested != Notify::none;
  if (cq.arming.triggered) static_cast<CompletionEvents*>(object)->raise(cq);
}

void CompletionEvents::arm(SimCq& cq, Notify requested, Picos when) {
  cq.arming.requested = std::max(cq.arming.requested, requested);
  // Completions that are on their way to memory are new to the program.
  for (std::uint64_t n = cq.written; n > cq.polled && cq.at(n - 1).visible > engine_.now(); --n) {
    if (wanted(cq.arming.requested, cq.at(n - 1))) cq.arming.triggered = true;
  }
  engine_.schedule(when, &doorbell_arrives, this, reinterpret_cast<std::uint64_t>(&cq));
}

void CompletionEvents::notify(SimCq& cq, const Completion& completion) {
  if (!wanted(cq.arming.requested, completion)) return;
  if (cq.arming.at_nic) {
    raise(cq);
  } else {
    cq.arming.triggered = true;
  }
}

}  // namespace verbscope::sim
