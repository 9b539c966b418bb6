// Threads of a process that wait for an address, as in futex(2).
#pragma once

#include <cstdint>
#include <list>

#include "common/units.hpp"
#include "nic_sim/host/thread.hpp"

namespace verbscope::simulate {

class Waits {
 public:
  // `wakeup`: from a wake until the thread runs.
  explicit Waits(Picos wakeup) : wakeup_(wakeup) {}
  Waits(const Waits&) = delete;
  Waits& operator=(const Waits&) = delete;

  struct Waiting {
    std::uint64_t address;
    sim::SimThread* thread;
    bool woken;
  };

  // While it lives, a simulated thread waits, behind those that already do.
  class Wait {
   public:
    Wait(Waits& waits, std::uint64_t address, sim::SimThread& thread)
        : waits_(waits), place_(waits.waiting_.insert(waits.waiting_.end(), {address, &thread, false})) {}
    Wait(const Wait&) = delete;
    Wait& operator=(const Wait&) = delete;
    ~Wait() { waits_.waiting_.erase(place_); }
    bool woken() const { return place_->woken; }

   private:
    Waits& waits_;
    std::list<Waiting>::iterator place_;
  };

  // Ends the waits of the first `count` threads for the address.
  void wake(std::uint64_t address, std::uint32_t count, Picos now) {
    for (Waiting& each : waiting_) {
      if (count == 0) return;
      if (each.woken || each.address != address) continue;
      each.woken = true;
      each.thread->end_sleep_at(now + wakeup_);
      --count;
    }
  }

 private:
  Picos wakeup_;
  std::list<Waiting> waiting_;
};

}  // namespace verbscope::simulate
