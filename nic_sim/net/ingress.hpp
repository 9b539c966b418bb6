// The receiving side of an Ethernet port: bytes of its sender in the buffer, by priority, and pauses of that sender.
#pragma once

#include <array>
#include <cstdint>

#include "nic_sim/net/discipline.hpp"
#include "nic_sim/net/out_port.hpp"
#include "nic_sim/time/mailbox.hpp"

namespace verbscope::sim {

class Ingress {
 public:
  // `self` and `sender`: numbers in the mailbox. `way`: time from the decision to pause until the sender acts on it.
  Ingress(Mailbox& mailbox, const Discipline& discipline, std::uint32_t self, std::uint32_t sender, OutPort& far_end,
          Picos way)
      : mailbox_(&mailbox), discipline_(&discipline), self_(self), sender_(sender), far_end_(&far_end), way_(way) {}

  // A packet of `bytes` enters the buffer, or leaves it, at `now`.
  void took(std::size_t priority, std::uint32_t bytes, Picos now) {
    held_[priority] += bytes;
    tell(priority, now);
  }
  void gave(std::size_t priority, std::uint32_t bytes, Picos now) {
    held_[priority] -= bytes;
    tell(priority, now);
  }
  // Pauses sent so far.
  std::uint64_t pauses() const { return pauses_; }

 private:
  void tell(std::size_t priority, Picos now) {
    const unsigned bit = 1u << priority;
    const bool told = (told_ & bit) != 0;
    if (discipline_->pauses(held_[priority], told) == told) return;
    told_ ^= bit;
    pauses_ += told ? 0 : 1;
    mailbox_->send(self_, sender_, now + way_, told ? &OutPort::resume : &OutPort::pause, far_end_, priority);
  }

  Mailbox* mailbox_;
  const Discipline* discipline_;
  std::uint32_t self_;
  std::uint32_t sender_;
  OutPort* far_end_;
  Picos way_;
  std::array<std::uint64_t, kPriorities> held_{};
  unsigned told_ = 0;  // paused priorities, one bit each
  std::uint64_t pauses_ = 0;
};

}  // namespace verbscope::sim
