// The completion unit of a NIC. Every CQE passes here. CqeWriter writes CQEs to completion queues, over PCIe, and wakes
// who polls them. The state of every queue is in the NIC at all times: the adapters' caches of it are not modelled.
// CompletionEvents: the program arms a completion queue, and a completion that meets an armed queue raises one event.
// docs/simulator.md has the sequence.
#pragma once

#include "nic_sim/host/thread.hpp"
#include "nic_sim/link/pcie_bus.hpp"
#include "nic_sim/nic/objects.hpp"
#include "nic_sim/time/engine.hpp"

namespace verbscope::sim {

class CompletionEvents {
 public:
  CompletionEvents(Engine& engine, PcieBus& bus) : engine_(engine), bus_(bus) {}
  CompletionEvents(const CompletionEvents&) = delete;
  CompletionEvents& operator=(const CompletionEvents&) = delete;

  // The program asks for an event of `cq`, by a doorbell that arrives at the NIC at `when`. Completions that the
  // program can see by now cause none.
  void arm(SimCq& cq, Notify asked, Picos when);

  // `completion` has come to a queue for which an event is asked.
  void meet(SimCq& cq, const Completion& completion);

 private:
  static void doorbell_arrives(void* events, std::uint64_t cq);
  void raise(SimCq& cq);

  Engine& engine_;
  PcieBus& bus_;
};

class CqeWriter {
 public:
  // `cqe`: the size of one.
  CqeWriter(PcieBus& bus, CompletionEvents& events, Bytes cqe) : bus_(bus), events_(events), cqe_bytes_(cqe.value) {}
  CqeWriter(const CqeWriter&) = delete;
  CqeWriter& operator=(const CqeWriter&) = delete;

  // `what` has happened. `what.visible` is not looked at. Inline: what the caller says goes straight to its place.
  void complete(SimCq& cq, const Completion& what) {
    if (cq.waiting() == static_cast<std::uint64_t>(cq.cqe)) {
      cq.overrun = true;  // the program sees it at its next poll; what came before stays readable
      return;
    }
    const Picos visible = write(cq.written);
    Completion& completion = cq.next_place();
    completion = what;
    completion.visible = visible;
    for (SimThread* waiter : cq.waiters) waiter->wake_at(visible);
    if (cq.arming.asked != Notify::none) events_.meet(cq, completion);
  }

 private:
  // Writes CQE number `n`; yields when it can be seen. The ring ends where a line does.
  Picos write(std::uint64_t n) { return bus_.dma_write(n * cqe_bytes_, cqe_bytes_); }

  PcieBus& bus_;
  CompletionEvents& events_;
  std::uint64_t cqe_bytes_;
};

}  // namespace verbscope::sim
