// The data path of atomic_rate: atomics outstanding on each QP, on counters chosen at each post.
#pragma once

#include <infiniband/verbs.h>

#include <algorithm>
#include <cstdint>
#include <span>

#include "microbench/loop/choice.hpp"
#include "microbench/loop/lane_queue.hpp"

namespace verbscope {

// The atomics outstanding on a QP: they complete in order, so the oldest is at retired % requests.size().
struct AtomicQueue {
  std::span<ibv_send_wr> requests;
  std::span<std::uint64_t> results;  // what each request returned
  std::span<std::uint64_t> counter;  // the counter that each request worked on
  std::uint64_t base = 0;            // address of the peer's first counter
  std::uint64_t retired = 0;
};

struct AtomicState {
  ibv_cq* cq = nullptr;
  ibv_comp_channel* channel = nullptr;
  std::span<LaneQueue> lanes;
  std::span<AtomicQueue> queues;
  Choice choice{1, false, 0, 0};
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
  retire_signaled(s.lanes[index]);
  if (s.seen.empty()) return;
  const std::uint64_t before = q.results[slot];
  const bool swapped = before == q.requests[slot].wr.atomic.compare_add;
  s.swapped += swapped ? 1 : 0;
  s.seen[q.counter[slot]] = before + (swapped ? 1 : 0);
}

// Keeps as many atomics outstanding as may be until the stop or the goal, then waits for what is under way.
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
    const int count = take_completions<kCompletionBatch>(
        s.cq, window.left(ops), tally.end, [&s](const ibv_wc& wc) { retire_atomic(s, sent_queue(wc.wr_id)); });
    if (count < 0) return;
    if (count == 0) {
      if (!wait.idle_unless_quit(node, control)) return;
      continue;
    }
    ops += static_cast<std::uint64_t>(count);
    tally.done_ops.store(ops, std::memory_order_relaxed);
    if (window.see(node, control.phase.load(std::memory_order_relaxed), ops)) running = false;
  }
}

}  // namespace verbscope
