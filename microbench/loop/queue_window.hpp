// The measured window of a thread with several queues. A completion may tell that many operations of one of them are
// done, and messages of many packets, which leave in turn, end together: completions of different queues come in
// bursts, one a round of the queues, so that the thread's count between two moments may be off by a round. Each queue
// therefore has a window of its own, from its first completion after the one turn of the phase to that after the other:
// as many operations as it completed in just that time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "microbench/bench/control.hpp"

namespace verbscope {

class QueueWindow {
 public:
  // `queues` has a place for each queue of the thread, or none: then the thread's own window tells, as it does where a
  // goal ends it.
  QueueWindow(ThreadTally& tally, std::uint64_t goal, std::span<WindowBounds> queues)
      : tally_(tally),
        window_(tally, goal),
        queues_(goal == MeasuredWindow::kNoGoal ? queues : std::span<WindowBounds>()) {}

  // As MeasuredWindow::see. After a turn of the phase the queues are noted, by note().
  template <Node N>
  bool see(N& node, Phase phase, std::uint64_t ops) {
    if (!window_.due(phase, ops)) [[likely]]
      return false;
    const bool changed = window_.note_turn(node.now(), phase, ops);
    if (queues_.empty() || phase == Phase::stop) {
      if (changed || noting()) end_without_queues();
    } else if (changed) {
      begin_noting();
    }
    return window_.over();
  }

  // Call after a poll that found nothing: the queues are noted from their next completions on.
  template <Node N>
  void look(N& node, Phase phase, std::uint64_t ops) {
    if (queues_.empty() || phase == Phase::stop || !window_.due(phase, ops)) return;
    if (window_.note_turn(node.now(), phase, ops)) begin_noting();
  }

  // Whether there are queues that have not completed since the last turn.
  bool noting() const { return pending_ > 0; }
  // While noting: a completion of queue `queue` came at `now`, of which `ops` operations are done.
  void note(std::size_t queue, Picos now, std::uint64_t ops) {
    WindowBounds& window = queues_[queue];
    if (window.noted == window_.noted()) return;
    window.note(window_.noted(), now, ops);
    if (--pending_ == 0) tally_.tell_noted(window_.noted());
  }

  std::uint64_t left(std::uint64_t ops) const { return window_.left(ops); }

 private:
  void begin_noting() {
    if (window_.noted() == Phase::measure) {
      for (WindowBounds& window : queues_) window = {};
      tally_.queue_windows = queues_;
    } else if (noting()) {
      tally_.queue_windows = {};  // nobody waited for a queue that was late
    }
    pending_ = queues_.size();
  }

  // The thread's own window stands, and any that the queues have not come to the end of does not.
  void end_without_queues() {
    if (noting()) tally_.queue_windows = {};
    pending_ = 0;
    tally_.tell_noted(window_.noted());
  }

  ThreadTally& tally_;
  MeasuredWindow window_;
  std::span<WindowBounds> queues_;
  std::size_t pending_ = 0;
};

}  // namespace verbscope
