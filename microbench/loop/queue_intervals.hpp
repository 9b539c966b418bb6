// The measured interval of a thread with several queues. A completion may stand for many operations of one queue, and
// messages of many packets, whose packets take turns, end together. So completions arrive in bursts, one per round of
// the queues, and the thread's count between two moments may be off by a round. Each queue therefore has an interval of
// its own. It lasts from the queue's first completion after the phase begins to its first completion after the phase
// ends, and has exactly the operations that the queue completed in this time. With a goal each queue's interval ends
// with its share of the goal, while the other queues continue.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>

#include "microbench/bench/control.hpp"

namespace verbscope {

class QueueIntervals {
 public:
  // `queues`: one per queue of the thread; empty: the interval is that of the thread.
  QueueIntervals(ThreadTally& tally, std::uint64_t goal, std::span<IntervalBounds> queues)
      : tally_(tally),
        interval_(tally, queues.empty() ? goal : MeasuredInterval::kNoGoal),
        queues_(queues),
        goal_(queues.empty() || goal == MeasuredInterval::kNoGoal ? MeasuredInterval::kNoGoal : goal / queues.size()) {}

  // As MeasuredInterval::see. After a turn of the phase the queues are noted, by note().
  template <Node N>
  bool see(N& node, Phase phase, std::uint64_t ops) {
    if (!interval_.due(phase, ops)) [[likely]]
      return false;
    const bool changed = interval_.note_turn(node.now(), phase, ops);
    if (queues_.empty() || phase == Phase::stop) {
      if (changed || noting()) end_without_queues();
    } else if (changed) {
      begin_noting();
    }
    return interval_.over();
  }

  // Call after a poll that found nothing: the queues are noted from their next completions on.
  template <Node N>
  void look(N& node, Phase phase, std::uint64_t ops) {
    if (queues_.empty() || phase == Phase::stop || !interval_.due(phase, ops)) return;
    if (interval_.note_turn(node.now(), phase, ops)) begin_noting();
  }

  // Whether there are queues that have not completed since the last turn, or have not reached their goal.
  bool noting() const { return pending_ > 0 || open_ > 0; }
  // While noting: a completion of queue `queue` came at `now`, of which `ops` operations are done.
  void note(std::size_t queue, Picos now, std::uint64_t ops) {
    IntervalBounds& interval = queues_[queue];
    if (interval.noted == Phase::closed && goal_ != MeasuredInterval::kNoGoal) return;
    if (interval.noted != interval_.noted()) {
      interval.note(interval_.noted(), now, ops);
      if (--pending_ == 0) tally_.set_noted(interval_.noted());
    } else if (open_ > 0 && ops - interval.begin_ops >= goal_) {
      interval.note(Phase::closed, now, ops);
      if (--open_ == 0) close_at_goal();
    }
  }
  // Whether each queue has reached its goal.
  bool reached() const { return reached_; }

  std::uint64_t left(std::uint64_t ops) const { return interval_.left(ops); }

 private:
  void begin_noting() {
    if (interval_.noted() == Phase::measure) {
      for (IntervalBounds& interval : queues_) interval = {};
      tally_.queue_intervals = queues_;
    } else if (noting()) {
      tally_.queue_intervals = {};  // a late queue was not waited for
    }
    pending_ = queues_.size();
    if (goal_ != MeasuredInterval::kNoGoal && interval_.noted() == Phase::measure) open_ = queues_.size();
  }

  // The thread's interval has the operations of all its queues, and lasts as long as these take at the sum of the
  // queues' rates, because each rate was measured while all queues were active.
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

  // Keeps the thread's own interval, and discards those that the queues have not ended.
  void end_without_queues() {
    if (noting()) tally_.queue_intervals = {};
    pending_ = open_ = 0;
    tally_.set_noted(interval_.noted());
  }

  ThreadTally& tally_;
  MeasuredInterval interval_;
  std::span<IntervalBounds> queues_;
  std::uint64_t goal_;  // of each queue
  std::size_t pending_ = 0;
  std::size_t open_ = 0;  // queues that have not reached their goal
  bool reached_ = false;
};

}  // namespace verbscope
