// Shared by the controller and the benchmark threads of one process while a point runs: the phase, the order to quit,
// and one tally per thread. Data path: no allocation, and inline calls only. A thread wakes the controller when it has
// noted a phase.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>

#include "common/awaited.hpp"
#include "common/fd.hpp"
#include "common/units.hpp"
#include "machine/node.hpp"
#include "machine/phase.hpp"

namespace verbscope {

// The controller writes it, and every thread reads it.
struct RunControl {
  alignas(64) PhaseWord phase{Phase::warmup};
  // Set if no more completions will arrive: a thread whose poll finds none then returns.
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

// The measured interval of one thread, or of one queue of a thread: the clock and the operations so far, each at the
// first completion after the phase has changed.
struct IntervalBounds {
  Picos begin{0};
  Picos half{0};
  Picos end{0};
  std::uint64_t begin_ops = 0;
  std::uint64_t half_ops = 0;
  std::uint64_t end_ops = 0;
  Phase noted = Phase::warmup;  // the last noted phase: measure, halved or closed

  void note(Phase phase, Picos now, std::uint64_t ops) {
    noted = phase;
    (phase == Phase::measure ? begin : phase == Phase::halved ? half : end) = now;
    (phase == Phase::measure ? begin_ops : phase == Phase::halved ? half_ops : end_ops) = ops;
  }
};

// The counts of one thread. The controller reads the atomics while the thread runs. It reads the rest after the thread
// has ended, or the bounds of an interval after `noted` is closed.
struct alignas(64) ThreadTally {
  std::atomic<std::uint64_t> done_ops{0};  // operations completed (sender) or messages received (receiver)
  std::atomic<std::uint64_t> armed{0};     // times that the thread armed its completion queue, with --events
  // The last phase in the bounds of this interval: measure, halved or closed; warmup: none.
  std::atomic<Phase> noted{Phase::warmup};
  std::atomic<bool> ended{false};
  // For a thread that sends and receives.
  std::atomic<bool> drained{false};       // all its requests are complete; it still receives
  std::atomic<std::uint64_t> arrived{0};  // messages received
  Picos started{0};
  const EventFd* controller = nullptr;  // signaled when noted, drained or ended changes; null: none
  IntervalBounds interval;
  // The interval of each queue, if a completion stands for many operations of one of several queues
  // (loop/queue_intervals.hpp). Empty: use `interval`.
  std::span<const IntervalBounds> queue_intervals;
  RunEnd end;

  void set_noted(Phase phase) { set(noted, phase); }
  void set_drained() { set(drained, true); }
  void set_ended() { set(ended, true); }

  bool opened() const { return noted.load(std::memory_order_acquire) != Phase::warmup; }
  bool closed() const { return noted.load(std::memory_order_acquire) == Phase::closed; }

 private:
  template <class T>
  void set(std::atomic<T>& field, T value) {
    field.store(value, std::memory_order_release);
    if (controller != nullptr) controller->signal();
  }
};

// Threads that share QPs also share the completion queue. The thread that polls a completion counts it here for the
// thread that posted the request. Data path.
class SharedCompletions {
 public:
  // `members`: the threads; `queues`: the QPs that they share.
  SharedCompletions(std::size_t members, std::size_t queues)
      : stride_(queues + kPadding), counts_(std::make_unique<std::atomic<std::uint64_t>[]>(members * stride_)) {}

  // Call after polling `completions` of requests that `member` posted to `queue`.
  void credit(std::size_t member, std::size_t queue, std::uint64_t completions) {
    count(member, queue).fetch_add(completions, std::memory_order_release);
  }

  // Returns the completions that other threads have credited to `member` since the last call.
  std::uint64_t collect(std::size_t member, std::size_t queue) {
    std::atomic<std::uint64_t>& own = count(member, queue);
    return own.load(std::memory_order_relaxed) == 0 ? 0 : own.exchange(0, std::memory_order_acquire);
  }

 private:
  static constexpr std::size_t kPadding = 16;  // words: members do not share a pair of cache lines

  std::atomic<std::uint64_t>& count(std::size_t member, std::size_t queue) { return counts_[member * stride_ + queue]; }

  std::size_t stride_;
  std::unique_ptr<std::atomic<std::uint64_t>[]> counts_;
};

// The measured interval of one thread: follows the phase, and notes when the interval begins, is half over and ends.
// `goal`: the number of operations to measure; kNoGoal: the phase ends the interval.
class MeasuredInterval {
 public:
  static constexpr std::uint64_t kNoGoal = std::numeric_limits<std::uint64_t>::max();

  MeasuredInterval(ThreadTally& tally, std::uint64_t goal) : tally_(tally), goal_(goal) {}

  // Call after each batch of completions with all operations counted so far. Returns true if the thread must end: the
  // phase is `stop`, or the goal is reached.
  template <Node N>
  bool see(N& node, Phase phase, std::uint64_t ops) {
    if (phase == seen_ && ops < close_at_) [[likely]]
      return false;
    if (!note_turn(node.now(), phase, ops)) return over_;
    tally_.set_noted(noted_);
    return over_;
  }

  // Notes a change of the phase, or that the goal is reached. Returns true if the bounds have changed; the caller then
  // sets ThreadTally::noted.
  bool note_turn(Picos now, Phase phase, std::uint64_t ops) {
    const Phase before = noted_;
    const bool turned = phase != seen_;
    if (turned && (phase == Phase::measure || (seen_ == Phase::warmup && phase != Phase::warmup))) {
      // Order this after the controller's reads of the interval before: it reset `noted` after them.
      static_cast<void>(tally_.noted.load(std::memory_order_acquire));
      set_bound(Phase::measure, now, ops);
      if (goal_ != kNoGoal) close_at_ = ops + goal_;
    }
    if (turned && phase == Phase::halved) set_bound(Phase::halved, now, ops);
    const bool reached = ops >= close_at_;
    if (in_interval(noted_) && (phase >= Phase::closed || reached)) set_bound(Phase::closed, now, ops);
    if (reached) close_at_ = kNoGoal;
    over_ = over_ || reached || phase == Phase::stop;
    seen_ = phase;
    return noted_ != before;
  }

  Phase seen() const { return seen_; }
  Phase noted() const { return noted_; }
  bool over() const { return over_; }
  bool closed() const { return noted_ == Phase::closed; }
  // True if operations that complete now belong to the interval.
  bool measuring() const { return in_interval(noted_); }
  // Operations that may still be counted before the goal is reached; poll for no more than these.
  std::uint64_t left(std::uint64_t ops) const { return close_at_ - ops; }
  // True if see() has a change to note.
  bool due(Phase phase, std::uint64_t ops) const { return phase != seen_ || ops >= close_at_; }

 private:
  void set_bound(Phase phase, Picos now, std::uint64_t ops) {
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
