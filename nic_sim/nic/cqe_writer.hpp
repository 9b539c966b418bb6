// The completion unit of a NIC: every CQE passes here. It writes CQEs to completion queues, over PCIe, and wakes who
// polls them. A CQE may be delayed, and those behind it of the same queue with it; who completes a work request does
// not learn of it.
#pragma once

#include "nic_sim/host/thread.hpp"
#include "nic_sim/link/pcie_bus.hpp"
#include "nic_sim/nic/objects.hpp"

namespace verbscope::sim {

// The NIC's state of completion queues, which it needs to write a CQE. The adapters' caches of it are not modelled: the
// state of every queue is in the NIC at all times.
struct CqContexts {
  // Whether the state of `cq` is in the NIC. If not, `writer.write_delayed(cq)` is called by an event when it is, and
  // until then the answer stays the same.
  template <class Writer>
  bool at_hand(SimCq&, Writer&) const {
    return true;
  }
};

template <class Contexts>
class BasicCqeWriter {
 public:
  // `cqe`: the size of one.
  BasicCqeWriter(PcieBus& bus, Bytes cqe, Contexts contexts = {})
      : bus_(bus), cqe_bytes_(cqe.value), contexts_(contexts) {}
  BasicCqeWriter(const BasicCqeWriter&) = delete;
  BasicCqeWriter& operator=(const BasicCqeWriter&) = delete;

  // `what` has happened. Its CQE has its place in the queue at once, so that order and overrun are the same whether it
  // is delayed or not. `what.visible` is not looked at. Inline: what the caller says goes straight to its place.
  void complete(SimCq& cq, const Completion& what) {
    if (cq.waiting() == static_cast<std::uint64_t>(cq.cqe)) {
      cq.overrun = true;  // the program sees it at its next poll; what came before stays readable
      return;
    }
    const bool at_hand = contexts_.at_hand(cq, *this);
    const Picos visible = at_hand ? write(cq.written) : Completion::kNotWritten;
    Completion& completion = cq.next_place();
    completion = what;
    completion.visible = visible;
    if (at_hand) tell_of(cq, completion);
  }

  // The state of `cq` has come: the CQEs that wait for it are written. Those of a QP that was reset or destroyed
  // meanwhile have left the queue.
  void write_delayed(SimCq& cq) {
    std::uint64_t n = cq.written;
    while (n > cq.polled && !cq.at(n - 1).is_written()) --n;
    for (; n < cq.written; ++n) {
      cq.at(n).visible = write(n);
      tell_of(cq, cq.at(n));
    }
  }

 private:
  // Writes CQE number `n`; yields when it can be seen. The ring ends where a line does.
  Picos write(std::uint64_t n) { return bus_.dma_write(n * cqe_bytes_, cqe_bytes_); }

  void tell_of(SimCq& cq, const Completion& completion) {
    for (SimThread* waiter : cq.waiters) waiter->wake_at(completion.visible);
    if (cq.arming.asked != Notify::none) meet(*as_sim(cq.context).nic, cq, completion);
  }

  PcieBus& bus_;
  std::uint64_t cqe_bytes_;
  [[no_unique_address]] Contexts contexts_;
};

using CqeWriter = BasicCqeWriter<CqContexts>;

}  // namespace verbscope::sim
