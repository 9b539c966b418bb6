// The completion unit of a NIC: every CQE passes here. It writes CQEs to completion queues, over PCIe, and wakes who
// polls them. The state of every queue is in the NIC at all times: the adapters' caches of it are not modelled.
#pragma once

#include "nic_sim/host/thread.hpp"
#include "nic_sim/link/pcie_bus.hpp"
#include "nic_sim/nic/objects.hpp"

namespace verbscope::sim {

class CqeWriter {
 public:
  // `cqe`: the size of one.
  CqeWriter(PcieBus& bus, Bytes cqe) : bus_(bus), cqe_bytes_(cqe.value) {}
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
    if (cq.arming.asked != Notify::none) meet(*as_sim(cq.context).nic, cq, completion);
  }

 private:
  // Writes CQE number `n`; yields when it can be seen. The ring ends where a line does.
  Picos write(std::uint64_t n) { return bus_.dma_write(n * cqe_bytes_, cqe_bytes_); }

  PcieBus& bus_;
  std::uint64_t cqe_bytes_;
};

}  // namespace verbscope::sim
