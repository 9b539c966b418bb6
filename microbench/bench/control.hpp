// The controller and the benchmark threads of one process share this while a point runs: the phase, the order to give
// up, and one tally a thread. Data path: no allocation, no call that is not inline but for a wake at a turn of the
// phase.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>

#include "common/awaited.hpp"
#include "common/event_fd.hpp"
#include "common/units.hpp"
#include "machine/node.hpp"
#include "machine/phase.hpp"

namespace verbscope {

// The controller writes it, and every thread reads it.
struct RunControl {
  alignas(64) PhaseWord phase{Phase::warmup};
  // Set when nothing more will come: a thread that finds no completion then returns.
  Awaited<bool> quit;
};

// How a thread's loop ended.
enum class EndKind : std::uint8_t { finished, gave_up, post_failed, poll_failed, completion_failed };

struct RunEnd {
  EndKind kind = EndKind::finished;
  int code = 0;                    // errno of post_failed; ibv_wc_status of completion_failed
  std::uint32_t vendor_error = 0;  // the adapter's own code of completion_failed
  std::uint32_t queue = 0;         // index of the thread's queue that it happened on
};

// The measured window as one thread, or one queue of a thread, saw it: clock and operations at the first completions
// after each turn of the phase.
struct IntervalBounds {
  Picos begin{0};
  Picos half{0};
  Picos end{0};
  std::uint64_t begin_ops = 0;
  std::uint64_t half_ops = 0;
  std::uint64_t end_ops = 0;
  Phase noted = Phase::warmup;  // the last turn that is noted: to measure, halved or closed

  void note(Phase phase, Picos now, std::uint64_t ops) {
    noted = phase;
    (phase == Phase::measure ? begin : phase == Phase::halved ? half : end) = now;
    (phase == Phase::measure ? begin_ops : phase == Phase::halved ? half_ops : end_ops) = ops;
  }
};

// One thread's account. The atomics are read by the controller while the thread runs, the rest after it has ended, or
// while `noted` says that it is complete.
struct alignas(64) ThreadTally {
  std::atomic<std::uint64_t> done_ops{0};  // operations completed (sender) or messages received (receiver)
  std::atomic<std::uint64_t> armed{0};     // times that it armed its completion queue, with --events
  // The last of the phases measure, halved and closed that it has noted in its bounds; warmup: none of this window.
  std::atomic<Phase> noted{Phase::warmup};
  std::atomic<bool> ended{false};
  // Of a thread that sends and receives: what it has sent is complete, and it receives on; messages that have come.
  std::atomic<bool> drained{false};
  std::atomic<std::uint64_t> arrived{0};
  Picos started{0};
  const EventFd* controller = nullptr;  // who sleeps until one of noted, drained and ended has changed; null: nobody
  IntervalBounds interval;
  // Of each queue, where completions stand for many operations of one of several queues (queue_window.hpp); empty: the
  // thread's window tells.
  std::span<const IntervalBounds> queue_intervals;
  RunEnd end;

  void set_noted(Phase phase) { set(noted, phase); }
  void set_drained() { set(drained, true); }
  void set_ended() { set(ended, true); }

  bool opened() const { return noted.load(std::memory_order_acquire) != Phase::warmup; }
  bool closed() const { return noted.load(std::memory_order_acquire) == Phase::closed; }

 private:
  template <class T>
  void set(std::atomic<T>& what, T value) {
    what.store(value, std::memory_order_release);
    if (controller != nullptr) controller->signal();
  }
};

// The completions that threads which share QPs and their completion queue take for each other: a thread that polls
// counts each completion here for the thread that posted it. Data path.
class SharedCompletions {
 public:
  // `members`: the threads; `queues`: the QPs that they share.
  SharedCompletions(std::size_t members, std::size_t queues)
      : stride_(queues + kApart), counts_(std::make_unique<std::atomic<std::uint64_t>[]>(members * stride_)) {}

  // Another thread took `completions` of requests that `member` posted to `queue`.
  void credit(std::size_t member, std::size_t queue, std::uint64_t completions) {
    count(member, queue).fetch_add(completions, std::memory_order_release);
  }

  // Completions of requests that `member` posted to `queue`, taken by others since the last call.
  std::uint64_t collect(std::size_t member, std::size_t queue) {
    std::atomic<std::uint64_t>& own = count(member, queue);
    return own.load(std::memory_order_relaxed) == 0 ? 0 : own.exchange(0, std::memory_order_acquire);
  }

 private:
  static constexpr std::size_t kApart = 16;  // words, so that no two members have counts in one pair of cache lines

  std::atomic<std::uint64_t>& count(std::size_t member, std::size_t queue) { return counts_[member * stride_ + queue]; }

  std::size_t stride_;
  std::unique_ptr<std::atomic<std::uint64_t>[]> counts_;
};

// The measured window of one thread: follows the phase and notes where the window begins, is half over and ends. `goal`
// is the number of operations to measure, or kNoGoal for a window ended by time.
class MeasuredInterval {
 public:
  static constexpr std::uint64_t kNoGoal = std::numeric_limits<std::uint64_t>::max();

  MeasuredInterval(ThreadTally& tally, std::uint64_t goal) : tally_(tally), goal_(goal) {}

  // Call after each batch of completions with all operations counted so far. True when the thread must come to its end:
  // the phase became `stop`, or the goal is reached.
  template <Node N>
  bool see(N& node, Phase phase, std::uint64_t ops) {
    if (phase == seen_ && ops < close_at_) [[likely]]
      return false;
    if (!note_turn(node.now(), phase, ops)) return over_;
    tally_.set_noted(noted_);
    return over_;
  }

  // Notes a turn of the phase, or that the goal is reached. Returns whether the bounds have changed: the thread's
  // tally does not say so yet.
  bool note_turn(Picos now, Phase phase, std::uint64_t ops) {
    const Phase before = noted_;
    const bool turned = phase != seen_;
    if (turned && (phase == Phase::measure || (seen_ == Phase::warmup && phase != Phase::warmup))) {
      // What the controller read of a window before, it had read when it put `noted` back.
      static_cast<void>(tally_.noted.load(std::memory_order_acquire));
      take(Phase::measure, now, ops);
      if (goal_ != kNoGoal) close_at_ = ops + goal_;
    }
    if (turned && phase == Phase::halved) take(Phase::halved, now, ops);
    const bool reached = ops >= close_at_;
    if (in_interval(noted_) && (phase >= Phase::closed || reached)) take(Phase::closed, now, ops);
    if (reached) close_at_ = kNoGoal;
    over_ = over_ || reached || phase == Phase::stop;
    seen_ = phase;
    return noted_ != before;
  }

  Phase seen() const { return seen_; }
  Phase noted() const { return noted_; }
  bool over() const { return over_; }
  bool closed() const { return noted_ == Phase::closed; }
  // Whether what completes now is counted in the window.
  bool measuring() const { return in_interval(noted_); }
  // Operations that may still be counted before the goal is reached; poll for no more than these.
  std::uint64_t left(std::uint64_t ops) const { return close_at_ - ops; }
  // Whether something other than a batch of completions has to be done: see() then notes it.
  bool due(Phase phase, std::uint64_t ops) const { return phase != seen_ || ops >= close_at_; }

 private:
  void take(Phase phase, Picos now, std::uint64_t ops) {
    tally_.interval.note(phase, now, ops);
    noted_ = phase;
  }

  ThreadTally& tally_;
  std::uint64_t goal_;
  std::uint64_t close_at_ = kNoGoal;
  Phase seen_ = Phase::warmup;
  Phase noted_ = Phase::warmup;
  bool over_ = false;
};

}  // namespace verbscope
