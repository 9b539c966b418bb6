// The measured window of a thread with several queues. A completion may tell that many operations of one of them are
// done, and messages of many packets, which leave in turn, end together: completions of different queues come in
// bursts, one a round of the queues, so that the thread's count between two moments may be off by a round. Each queue
// therefore has a window of its own, from its first completion after the one turn of the phase to that after the other:
// as many operations as it completed in just that time. With a goal each queue's window ends with its share of that,
// while the others go on.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>

#include "microbench/bench/control.hpp"

namespace verbscope {

class QueueIntervals {
 public:
  // `queues` has a place for each queue of the thread, or none: then the thread's own window tells.
  QueueIntervals(ThreadTally& tally, std::uint64_t goal, std::span<IntervalBounds> queues)
      : tally_(tally),
        window_(tally, queues.empty() ? goal : MeasuredInterval::kNoGoal),
        queues_(queues),
        goal_(queues.empty() || goal == MeasuredInterval::kNoGoal ? MeasuredInterval::kNoGoal : goal / queues.size()) {}

  // As MeasuredInterval::see. After a turn of the phase the queues are noted, by note().
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

  // Whether there are queues that have not completed since the last turn, or have not reached their goal.
  bool noting() const { return pending_ > 0 || open_ > 0; }
  // While noting: a completion of queue `queue` came at `now`, of which `ops` operations are done.
  void note(std::size_t queue, Picos now, std::uint64_t ops) {
    IntervalBounds& window = queues_[queue];
    if (window.noted == Phase::closed && goal_ != MeasuredInterval::kNoGoal) return;
    if (window.noted != window_.noted()) {
      window.note(window_.noted(), now, ops);
      if (--pending_ == 0) tally_.set_noted(window_.noted());
    } else if (open_ > 0 && ops - window.begin_ops >= goal_) {
      window.note(Phase::closed, now, ops);
      if (--open_ == 0) close_at_goal();
    }
  }
  // Whether each queue has reached its goal.
  bool reached() const { return reached_; }

  std::uint64_t left(std::uint64_t ops) const { return window_.left(ops); }

 private:
  void begin_noting() {
    if (window_.noted() == Phase::measure) {
      for (IntervalBounds& window : queues_) window = {};
      tally_.queue_intervals = queues_;
    } else if (noting()) {
      tally_.queue_intervals = {};  // a late queue was not waited for
    }
    pending_ = queues_.size();
    if (goal_ != MeasuredInterval::kNoGoal && window_.noted() == Phase::measure) open_ = queues_.size();
  }

  // The thread's window holds the operations of all its queues, and lasts as long as these take at the sum of their
  // rates: each was measured while all others were at work.
  void close_at_goal() {
    double mops = 0;
    IntervalBounds all;
    for (const IntervalBounds& queue : queues_) {
      const std::uint64_t ops = queue.end_ops - queue.begin_ops;
      mops += queue.begin < queue.end ? to_mops(Ops(ops), queue.end - queue.begin) : 0;
      all.end = std::max(all.end, queue.end);
      all.end_ops += ops;
    }
    all.begin = all.end - (mops > 0 ? Picos(std::llround(static_cast<double>(all.end_ops) * 1e6 / mops)) : Picos(0));
    tally_.interval = all;
    tally_.queue_intervals = {};
    reached_ = true;
    tally_.set_noted(Phase::closed);
  }

  // The thread's own window stands, and any that the queues have not come to the end of does not.
  void end_without_queues() {
    if (noting()) tally_.queue_intervals = {};
    pending_ = open_ = 0;
    tally_.set_noted(window_.noted());
  }

  ThreadTally& tally_;
  MeasuredInterval window_;
  std::span<IntervalBounds> queues_;
  std::uint64_t goal_;  // of each queue
  std::size_t pending_ = 0;
  std::size_t open_ = 0;  // queues that have not reached their goal
  bool reached_ = false;
};

}  // namespace verbscope
