// The data path of atomic_rate: a window of atomics on each QP, on counters chosen at each post.
#pragma once

#include <infiniband/verbs.h>

#include <algorithm>
#include <cstdint>
#include <span>

#include "common/mix.hpp"
#include "microbench/loop/lane_queue.hpp"

namespace verbscope {

// The order in which counters are visited.
class CounterChoice {
 public:
  // `random`: uniformly, from `seed` (SplitMix64); otherwise one after the other, from `first` on.
  CounterChoice(std::uint64_t counters, bool random, std::uint64_t seed, std::uint64_t first)
      : counters_(counters), state_(random ? seed : first), random_(random) {}

  std::uint64_t next() {
    if (!random_) return state_++ % counters_;
    const std::uint64_t number = mix(state_);
    state_ += kMixStep;
    return (number >> 32) * counters_ >> 32;
  }

 private:
  std::uint64_t counters_;  // below 2^32
  std::uint64_t state_;
  bool random_;
};

// A QP's window: requests complete in order, so the oldest is at retired % requests.size().
struct AtomicQueue {
  std::span<ibv_send_wr> requests;
  std::span<std::uint64_t> results;  // what each returned
  std::span<std::uint64_t> counter;  // which it worked on
  std::uint64_t base = 0;            // address of the peer's first counter
  std::uint64_t retired = 0;
};

struct AtomicState {
  ibv_cq* cq = nullptr;
  ibv_comp_channel* channel = nullptr;
  std::span<LaneQueue> lanes;
  std::span<AtomicQueue> queues;
  CounterChoice choice{1, false, 0, 0};
  std::uint64_t stride = 8;
  // Compare-and-swap: the value that each counter had when last seen. A swap adds one to what it expects.
  std::span<std::uint64_t> seen;
  std::uint64_t swapped = 0;
  std::uint64_t goal = MeasuredWindow::kNoGoal;
};

inline bool post_atomics(AtomicState& s, std::uint32_t index, RunEnd& end) {
  LaneQueue& lane = s.lanes[index];
  AtomicQueue& q = s.queues[index];
  while (lane.room > 0) {
    const std::size_t slot = lane.posted % q.requests.size();
    const std::uint64_t counter = s.choice.next();
    ibv_send_wr& wr = q.requests[slot];
    wr.wr.atomic.remote_addr = q.base + counter * s.stride;
    q.counter[slot] = counter;
    if (!s.seen.empty()) {
      wr.wr.atomic.compare_add = s.seen[counter];
      wr.wr.atomic.swap = s.seen[counter] + 1;
    }
    if (!post_one(lane, wr, index, end)) return false;
  }
  return true;
}

// The oldest operation of the queue has completed.
inline void retire_atomic(AtomicState& s, std::uint32_t index) {
  AtomicQueue& q = s.queues[index];
  const std::size_t slot = q.retired++ % q.requests.size();
  ++s.lanes[index].room;
  if (s.seen.empty()) return;
  const std::uint64_t before = q.results[slot];
  const bool swapped = before == q.requests[slot].wr.atomic.compare_add;
  s.swapped += swapped ? 1 : 0;
  s.seen[q.counter[slot]] = before + (swapped ? 1 : 0);
}

// Takes up to `batch` completions. Returns how many, or -1 with `end` set.
inline int retire_atomics(AtomicState& s, int batch, RunEnd& end) {
  const auto queue_of = [](const ibv_wc& wc) { return static_cast<std::uint32_t>(wc.wr_id); };
  return take_completions(s.cq, batch, end, queue_of, [&](const ibv_wc& wc) {
    retire_atomic(s, queue_of(wc));
    return true;
  });
}

// Keeps every window full until the stop or the goal, then waits for what is under way.
template <Node N>
void atomic_loop(N& node, AtomicState& s, const RunControl& control, ThreadTally& tally) {
  MeasuredWindow window(tally, s.goal);
  IdleWait wait(s.cq, s.channel, tally);
  std::uint64_t ops = 0;
  const auto under_way = [&s] {
    return std::ranges::any_of(s.lanes, [](const LaneQueue& lane) { return lane.room < lane.depth; });
  };
  for (bool running = true; running || under_way();) {
    for (std::uint32_t i = 0; running && i < s.lanes.size(); ++i) {
      if (!post_atomics(s, i, tally.end)) return;
    }
    const int count =
        retire_atomics(s, static_cast<int>(std::min<std::uint64_t>(window.left(ops), kCompletionBatch)), tally.end);
    if (count < 0) return;
    if (count == 0) {
      if (!idle_unless_quit(node, wait, control, tally.end)) return;
      continue;
    }
    ops += static_cast<std::uint64_t>(count);
    tally.done_ops.store(ops, std::memory_order_relaxed);
    if (window.see(node, control.phase.load(std::memory_order_relaxed), ops)) running = false;
  }
}

}  // namespace verbscope
