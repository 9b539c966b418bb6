// Cache lines that several threads of one node change: words of atomic instructions, and locks. A line serves one core
// at a time and must be transferred if another core changed it last.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "common/units.hpp"
#include "nic_sim/host/thread.hpp"
#include "nic_sim/profile/profile.hpp"

namespace verbscope::sim {

// The lines of words that threads change by atomic instructions. Such an instruction first waits for earlier stores,
// including those to the NIC, and then for the line.
class SharedLines {
 public:
  explicit SharedLines(const HostProfile& host) : own_(host.atomic_add), transfer_(host.line_transfer) {}

  // `thread` changes the word at `address` by an atomic instruction. The change happens when this returns.
  void change(const void* address, SimThread& thread) {
    thread.spend(own_);
    thread.sync();
    Line& line = line_of(address);
    const Picos begin = std::max(thread.clock(), line.free_at);
    const Picos cost = line.owner == &thread ? Picos(0) : transfer_;
    line.free_at = begin + cost;
    line.busy += cost;
    line.owner = &thread;
    thread.stall_until(begin);
    thread.spend(cost);
  }

  // The time that each line has been transferred so far.
  std::vector<Picos> busy() const {
    std::vector<Picos> times;
    for (const Line& line : lines_) times.push_back(line.busy);
    return times;
  }

 private:
  struct Line {
    const void* address;
    const SimThread* owner;
    Picos free_at;
    Picos busy;
  };
  Line& line_of(const void* address) {
    const auto found = std::ranges::find(lines_, address, &Line::address);
    return found != lines_.end() ? *found : lines_.emplace_back(Line{address, nullptr, Picos(0), Picos(0)});
  }

  Picos own_;
  Picos transfer_;
  std::vector<Line> lines_;
};

// The time for which each spin lock of one node has been held so far, including hand-overs.
class LockTimes {
 public:
  // Adds a lock. The caller adds to the returned time.
  Picos& add() { return times_.emplace_back(Picos(0)); }
  std::vector<Picos> busy() const { return {times_.begin(), times_.end()}; }

 private:
  std::deque<Picos> times_;
};

// A spin lock that threads of one node share. Its cache line moves from the last owner's core. Each spinning core
// fetches the line as well, so handing it over takes longer the more threads wait (Anderson, "The Performance of Spin
// Lock Alternatives for Shared-Memory Multiprocessors", IEEE TPDS 1990); the releasing core must also fetch the line
// back from them. If many threads wait, only the first ones cost a whole transfer each.
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

// The lock that a driver takes for each call on a queue (rdma-core 44, providers/mlx5: mlx5_spin_lock of a QP's send
// queue and of a CQ). It costs nothing extra while only one thread uses the queue. From the second thread on it is a
// spin lock, and the queue's own cache lines move with it.
class DriverLock {
 public:
  // True if no other thread has used the queue so far.
  bool is_alone(SimThread& thread) {
    if (user_ == nullptr) user_ = &thread;
    return user_ == &thread && spin_ == nullptr;
  }
  // Takes the lock for a call by `thread` that holds the queue for `time`. Precondition: is_alone() is false for it.
  void take(SimThread& thread, Picos time, const HostProfile& host, LockTimes& times) {
    if (spin_ == nullptr) spin_ = std::make_unique<SpinLock>(host, host.queue_lines, times);
    spin_->take(thread, time);
  }

 private:
  SimThread* user_ = nullptr;  // the first user
  std::unique_ptr<SpinLock> spin_;
};

}  // namespace verbscope::sim
