// The conductor and the benchmark threads of one process share this while a point runs: the phase, the order to give
// up, and one tally a thread. Data path: no allocation, no call that is not inline.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>
#include <limits>

#include "common/units.hpp"
#include "machine/node.hpp"
#include "machine/phase.hpp"

namespace verbscope {

// The conductor writes it, and every thread reads it.
struct RunControl {
  alignas(64) PhaseWord phase{Phase::warmup};
  // Set when nothing more will come: a thread that finds no completion then returns. Threads may wait on it: notify
  // them.
  std::atomic<bool> quit{false};
};

// How a thread's loop ended.
enum class EndKind : std::uint8_t { finished, gave_up, post_failed, poll_failed, completion_failed };

struct RunEnd {
  EndKind kind = EndKind::finished;
  int code = 0;                    // errno of post_failed; ibv_wc_status of completion_failed
  std::uint32_t vendor_error = 0;  // the adapter's own code of completion_failed
  std::uint32_t queue = 0;         // index of the thread's queue that it happened on
};

// The measured window as one thread saw it: clock and operations at the first completions after each turn of the phase.
struct WindowBounds {
  Picos begin{0};
  Picos end{0};
  std::uint64_t begin_ops = 0;
  std::uint64_t end_ops = 0;
};

// One thread's account. The atomics are read by the conductor while the thread runs, the rest after it has ended.
struct alignas(64) ThreadTally {
  std::atomic<std::uint64_t> done_ops{0};  // operations completed (sender) or messages received (receiver)
  std::atomic<std::uint64_t> armed{0};     // times that it armed its completion queue, with --events
  std::atomic<bool> window_opened{false};
  std::atomic<bool> window_closed{false};
  std::atomic<bool> ended{false};
  WindowBounds window;
  RunEnd end;
};

// The measured window of one thread: follows the phase and notes where the window begins and ends. `goal` is the number
// of operations to measure, or kNoGoal for a window ended by time.
class MeasuredWindow {
 public:
  static constexpr std::uint64_t kNoGoal = std::numeric_limits<std::uint64_t>::max();

  MeasuredWindow(ThreadTally& tally, std::uint64_t goal) : tally_(tally), goal_(goal) {}

  // Call after each batch of completions with all operations counted so far. True when this closes the window: the
  // phase became `stop`, or the goal is reached.
  template <Node N>
  bool see(N& node, Phase phase, std::uint64_t ops) {
    if (phase == seen_ && ops < close_at_) [[likely]]
      return false;
    return turn(node.now(), phase, ops);
  }

  bool closed() const { return closed_; }
  // Whether what completes now is counted in the window.
  bool measuring() const { return seen_ == Phase::measure && !closed_; }
  // Operations that may still be counted before the goal is reached; poll for no more than these.
  std::uint64_t left(std::uint64_t ops) const { return close_at_ - ops; }

 private:
  bool turn(Picos now, Phase phase, std::uint64_t ops) {
    if (phase != Phase::warmup && seen_ == Phase::warmup) {
      tally_.window.begin = now;
      tally_.window.begin_ops = ops;
      if (goal_ != kNoGoal) close_at_ = ops + goal_;
      seen_ = Phase::measure;
      tally_.window_opened.store(true, std::memory_order_release);
    }
    if (!closed_ && seen_ == Phase::measure && (phase == Phase::stop || ops >= close_at_)) {
      tally_.window.end = now;
      tally_.window.end_ops = ops;
      closed_ = true;
      close_at_ = kNoGoal;
      tally_.window_closed.store(true, std::memory_order_release);
    }
    seen_ = phase;
    return closed_;
  }

  ThreadTally& tally_;
  std::uint64_t goal_;
  std::uint64_t close_at_ = kNoGoal;
  Phase seen_ = Phase::warmup;
  bool closed_ = false;
};

}  // namespace verbscope
