// The completion unit of a NIC. CqeWriter writes all CQEs to completion queues over PCIe and wakes the threads that
// poll them. CompletionEvents raises one event when a completion reaches an armed queue; AsyncEvents tells the program
// about changes that no completion tells. The adapters' caches of queue contexts are not modelled. docs/simulator.md
// has the sequence.
#pragma once

#include "nic_sim/host/thread.hpp"
#include "nic_sim/link/pcie_bus.hpp"
#include "nic_sim/nic/objects.hpp"
#include "nic_sim/time/engine.hpp"

namespace verbscope::sim {

// Asynchronous events of objects (ibv_get_async_event).
class AsyncEvents {
 public:
  explicit AsyncEvents(PcieBus& bus) : bus_(bus) {}
  AsyncEvents(const AsyncEvents&) = delete;
  AsyncEvents& operator=(const AsyncEvents&) = delete;

  void raise(SimCq& cq, ibv_event_type type);
  void raise(SimQp& qp, ibv_event_type type);
  void raise(SimSrq& srq, ibv_event_type type);

 private:
  void raise(ibv_context& context, const ibv_async_event& event);

  PcieBus& bus_;
};

class CompletionEvents {
 public:
  // `completion_lost` runs with `object` and a QP whose completion found no room.
  CompletionEvents(Engine& engine, PcieBus& bus, AsyncEvents& async_events, Engine::Action completion_lost,
                   void* object)
      : engine_(engine), bus_(bus), async_events_(async_events), completion_lost_(completion_lost), object_(object) {}
  CompletionEvents(const CompletionEvents&) = delete;
  CompletionEvents& operator=(const CompletionEvents&) = delete;

  // The program arms `cq` with a doorbell that arrives at the NIC at `when`. Completions that it can already see cause
  // no event.
  void arm(SimCq& cq, Notify requested, Picos when);

  // `completion` was written to a queue that is armed or being armed.
  void notify(SimCq& cq, const Completion& completion);

  // A completion of `qp` found no room in `cq`.
  void overrun(SimCq& cq, SimQp& qp);

 private:
  static void doorbell_arrives(void* events, std::uint64_t cq);
  void raise(SimCq& cq);

  Engine& engine_;
  PcieBus& bus_;
  AsyncEvents& async_events_;
  Engine::Action completion_lost_;
  void* object_;
};

class CqeWriter {
 public:
  // `cqe`: size of a CQE.
  CqeWriter(PcieBus& bus, CompletionEvents& events, Bytes cqe) : bus_(bus), events_(events), cqe_bytes_(cqe.value) {}
  CqeWriter(const CqeWriter&) = delete;
  CqeWriter& operator=(const CqeWriter&) = delete;

  // Writes a CQE with the contents of `what`, except `visible`, which is computed. Inline so that the compiler builds
  // `what` in its final place.
  void complete(SimCq& cq, const Completion& what) {
    if (cq.waiting() >= static_cast<std::uint64_t>(cq.cqe)) return events_.overrun(cq, *what.qp);
    const Picos visible = write(cq.written);
    Completion& completion = cq.next_place();
    completion = what;
    completion.visible = visible;
    for (SimThread* waiter : cq.waiters) waiter->wake_at(visible);
    if (cq.arming.requested != Notify::none) events_.notify(cq, completion);
  }

 private:
  // Writes CQE number `n`. Returns the time at which the program can see it. The ring ends at a cache line's end.
  Picos write(std::uint64_t n) { return bus_.dma_write(n * cqe_bytes_, cqe_bytes_); }

  PcieBus& bus_;
  CompletionEvents& events_;
  std::uint64_t cqe_bytes_;
};

}  // namespace verbscope::sim
