// A barrier for threads of the host that meet many thousand times a second. While each thread has its own processor, it
// spins for tens of microseconds before it sleeps, which std::barrier does not.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>

#include "common/awaited.hpp"
#include "common/clock.hpp"

namespace verbscope::sim {

class Barrier {
 public:
  explicit Barrier(std::uint32_t threads)
      : threads_(threads), looks_(threads > std::thread::hardware_concurrency() ? 0 : kLooks) {}

  // Returns when all threads have arrived. The last one runs `alone`, which must not throw, before any of them
  // continues.
  template <class Alone>
  void arrive_and_wait(Alone&& alone) {
    const std::uint32_t round = round_.load(std::memory_order_relaxed);
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == threads_) {
      arrived_.store(0, std::memory_order_relaxed);
      alone();
      round_ = round + 1;
      return;
    }
    for (int look = 0; look < looks_; ++look) {
      if (round_.load(std::memory_order_acquire) != round) return;
      cpu_relax();
    }
    round_.wait(round);
  }

 private:
  static constexpr int kLooks = 2000;  // each takes 20 to 60 ns

  std::uint32_t threads_;
  int looks_;
  alignas(64) std::atomic<std::uint32_t> arrived_{0};
  alignas(64) Awaited<std::uint32_t> round_;
};

}  // namespace verbscope::sim
