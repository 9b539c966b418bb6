// A spin lock that threads of one node share. Its cache line moves from the last owner's core. Each spinning core
// fetches the line as well, so handing it over takes longer the more threads wait (Anderson, "The Performance of Spin
// Lock Alternatives for Shared-Memory Multiprocessors", IEEE TPDS 1990); the releasing core must also fetch the line
// back from them. Of many waiting threads only the first cost a whole transfer each.
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
  // `lines`: cache lines that the lock's owners change, which move with the lock.
  SpinLock(const HostProfile& host, std::uint32_t lines, LockTimes& times)
      : host_(host), lines_(lines), busy_(times.add()) {}

  // `thread` takes the lock, and holds it for `time` from the moment at which this returns. It must not wait meanwhile.
  // If it also held the lock last and no other thread waits, only the call's own cost remains.
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
  // Duration of a hand-over while `ahead` threads hold the lock or wait for it.
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
  std::deque<Picos> releases_;  // release times of its owner and of waiting threads, ascending
};

}  // namespace verbscope::sim
