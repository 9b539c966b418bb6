// A spin lock that threads of one node take: the line that holds it comes over from the core that had it last, and each
// core that spins on it has the line meanwhile, so that handing it over takes the longer the more wait (Anderson, "The
// Performance of Spin Lock Alternatives for Shared-Memory Multiprocessors", IEEE TPDS 1990); the core that gives the
// lock back must get the line from them first.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>

#include "nic_sim/host/thread.hpp"

namespace verbscope::sim {

class SpinLock {
 public:
  // `transfer`: what a line takes that another core changed last.
  explicit SpinLock(Picos transfer) : transfer_(transfer) {}

  // `thread` has the lock for `time` from the moment at which this returns, and does not wait in between. A lock that
  // the same thread had last and nobody else wants costs nothing more than the call that takes it.
  void take(SimThread& thread, Picos time) {
    thread.sync();
    while (!releases_.empty() && releases_.front() <= thread.clock()) releases_.pop_front();
    const auto ahead = static_cast<std::int64_t>(releases_.size());
    const Picos free_at = ahead > 0 ? releases_.back() : thread.clock();
    const Picos hand_over = owner_ == &thread ? Picos(0) : transfer_ * (ahead + 1);
    thread.stall_until(free_at + hand_over);
    releases_.push_back(thread.clock() + time);
    if (owner_ != nullptr && owner_ != &thread) ++hand_overs_;
    owner_ = &thread;
  }

  // Times that another thread had it before.
  std::uint64_t hand_overs() const { return hand_overs_; }

 private:
  Picos transfer_;
  const SimThread* owner_ = nullptr;
  std::deque<Picos> releases_;  // when those who have it, or wait for it, give it back, in order
  std::uint64_t hand_overs_ = 0;
};

}  // namespace verbscope::sim
