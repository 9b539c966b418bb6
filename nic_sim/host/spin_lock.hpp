// A spin lock that threads of one node take: the line that holds it comes over from the core that had it last, and each
// core that spins on it has the line meanwhile, so that handing it over takes the longer the more wait (Anderson, "The
// Performance of Spin Lock Alternatives for Shared-Memory Multiprocessors", IEEE TPDS 1990); the core that gives the
// lock back must get the line from them first. Of many that wait only the first cost a whole transfer each.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>

#include "nic_sim/host/lock_times.hpp"
#include "nic_sim/host/thread.hpp"

namespace verbscope::sim {

class SpinLock {
 public:
  // `lines`: cache lines that those who have the lock change, and that come over with it.
  SpinLock(const HostProfile& host, std::uint32_t lines, LockTimes& times)
      : host_(host), lines_(lines), busy_(times.add()) {}

  // `thread` has the lock for `time` from the moment at which this returns, and does not wait in between. A lock that
  // the same thread had last and nobody else wants costs nothing more than the call that takes it.
  void take(SimThread& thread, Picos time) {
    thread.sync();
    while (!releases_.empty() && releases_.front() <= thread.clock()) releases_.pop_front();
    const Picos free_at = releases_.empty() ? thread.clock() : releases_.back();
    const Picos hand_over = owner_ == &thread ? Picos(0) : time_to_hand_over(releases_.size());
    thread.stall_until(free_at + hand_over);
    busy_ += hand_over + time;
    releases_.push_back(thread.clock() + time);
    owner_ = &thread;
  }

 private:
  // While `ahead` threads have it or wait for it.
  Picos time_to_hand_over(std::size_t ahead) const {
    const std::size_t whole = std::min<std::size_t>(ahead, host_.spinners_at_once);
    const double more = static_cast<double>(ahead - whole) * host_.spinner_share;
    const double transfers = 1.0 + lines_ + static_cast<double>(whole) + more;
    return Picos(static_cast<std::int64_t>(transfers * static_cast<double>(host_.line_transfer.count())));
  }

  const HostProfile& host_;
  std::uint32_t lines_;
  Picos& busy_;
  const SimThread* owner_ = nullptr;
  std::deque<Picos> releases_;  // when those who have it, or wait for it, give it back, in order
};

}  // namespace verbscope::sim
