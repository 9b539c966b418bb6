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

// Writes an entry of the event queue and an interrupt. Returns the time of the interrupt.
Picos interrupt(PcieBus& bus) {
  bus.dma_write(0, kEventQueueEntry.value);
  return bus.dma_write(0, kInterruptMessage.value);
}

}  // namespace

void AsyncEvents::raise(ibv_context& context, const ibv_async_event& event) {
  as_sim(&context).async_events.arrive(event, interrupt(bus_));
}

void AsyncEvents::raise(SimCq& cq, ibv_event_type type) {
  raise(*cq.context, {.element = {.cq = cq.verbs()}, .event_type = type});
}

void AsyncEvents::raise(SimQp& qp, ibv_event_type type) {
  raise(*qp.context, {.element = {.qp = &qp}, .event_type = type});
}

void AsyncEvents::raise(SimSrq& srq, ibv_event_type type) {
  raise(*srq.context, {.element = {.srq = &srq}, .event_type = type});
}

void CompletionEvents::raise(SimCq& cq) {
  cq.arming = Arming{};
  const Picos at = interrupt(bus_);  // behind the CQE on the link
  if (cq.channel != nullptr) static_cast<SimChannel*>(cq.channel)->events.arrive(cq.verbs(), at);
}

// InfiniBand Architecture Specification 1.3, volume 1, section 10.2.8.1: the queue is in error, and so are the QPs
// whose completions are lost. The program sees it at its next poll; earlier completions stay readable. The QP fails in
// an event of its own, because it may be completing other work requests now.
void CompletionEvents::overrun(SimCq& cq, SimQp& qp) {
  if (!cq.overrun) async_events_.raise(cq, IBV_EVENT_CQ_ERR);
  cq.overrun = true;
  engine_.schedule(engine_.now(), completion_lost_, object_, reinterpret_cast<std::uint64_t>(&qp));
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
