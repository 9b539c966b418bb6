// The data path of atomic_rate: atomics outstanding on each QP, on counters chosen at each post.
#pragma once

#include <infiniband/verbs.h>

#include <algorithm>
#include <cstdint>
#include <span>

#include "microbench/loop/choice.hpp"
#include "microbench/loop/send_queue.hpp"

namespace verbscope {

// What belongs to each request of a send queue's ring. Atomics of a QP complete in order, so the oldest is request
// completed() % ring.size().
struct AtomicPlaces {
  std::span<std::uint64_t> results;  // what each request returned
  std::span<std::uint64_t> counter;  // the counter that each request worked on
  std::uint64_t base = 0;            // address of the peer's first counter
};

struct AtomicState {
  ibv_cq* cq = nullptr;
  ibv_comp_channel* channel = nullptr;
  std::span<SendQueue> queues;
  std::span<AtomicPlaces> places;  // of each queue
  Choice choice{1, false, 0, 0};
  std::uint64_t stride = 8;
  // Compare-and-swap: the value that each counter had when last seen. A swap adds one to what it expects.
  std::span<std::uint64_t> seen;
  std::uint64_t swapped = 0;
  std::uint64_t goal = MeasuredInterval::kNoGoal;
};

inline bool post_atomics(AtomicState& s, std::uint32_t index, RunEnd& end) {
  SendQueue& q = s.queues[index];
  const AtomicPlaces& places = s.places[index];
  while (q.room > 0) {
    const std::uint64_t counter = s.choice.next();
    ibv_send_wr& wr = take_next(q);
    wr.wr.atomic.remote_addr = places.base + counter * s.stride;
    places.counter[static_cast<std::size_t>(&wr - q.ring.data())] = counter;
    if (!s.seen.empty()) {
      wr.wr.atomic.compare_add = s.seen[counter];
      wr.wr.atomic.swap = s.seen[counter] + 1;
    }
    if (!post_placed(q, &wr, end)) return false;
  }
  return true;
}

// The oldest operation of the queue has completed.
inline void retire_atomic(AtomicState& s, std::uint32_t index) {
  SendQueue& q = s.queues[index];
  const AtomicPlaces& places = s.places[index];
  const std::size_t slot = q.completed() % q.ring.size();
  retire_signaled(q);
  if (s.seen.empty()) return;
  const std::uint64_t before = places.results[slot];
  const bool swapped = before == q.ring[slot].wr.atomic.compare_add;
  s.swapped += swapped ? 1 : 0;
  s.seen[places.counter[slot]] = before + (swapped ? 1 : 0);
}

// Keeps as many atomics outstanding as may be until the stop or the goal, then waits for what is under way.
template <Node N>
void atomic_loop(N& node, AtomicState& s, const RunControl& control, ThreadTally& tally) {
  MeasuredInterval window(tally, s.goal);
  IdleWait wait(s.cq, s.channel, tally);
  std::uint64_t ops = 0;
  const auto under_way = [&s] {
    return std::ranges::any_of(s.queues, [](const SendQueue& queue) { return queue.room < queue.depth; });
  };
  for (bool running = true; running || under_way();) {
    for (std::uint32_t i = 0; running && i < s.queues.size(); ++i) {
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
