// The data path of atomic_rate: keeps atomics outstanding on each QP and chooses a counter for each post.
#pragma once

#include <infiniband/verbs.h>

#include <algorithm>
#include <cstdint>
#include <span>

#include "microbench/loop/choice.hpp"
#include "microbench/loop/send_queue.hpp"

namespace verbscope {

// The result and the counter of each request in the ring of a send queue. Atomics of a QP complete in order: the oldest
// is request completed() % ring.size().
struct AtomicPlaces {
  std::span<std::uint64_t> results;  // returned by each request
  std::span<std::uint64_t> counter;  // index of the counter of each request
  std::uint64_t base = 0;            // address of the peer's first counter
};

struct AtomicState {
  ibv_cq* cq = nullptr;
  ibv_comp_channel* channel = nullptr;
  std::span<SendQueue> queues;
  std::span<AtomicPlaces> places;  // by queue
  Choice choice{1, false, 0, 0};
  std::uint64_t stride = 8;
  // Compare-and-swap: the last known value of each counter. A swap replaces this value by the next one.
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

// Takes the completion of the oldest operation of a queue.
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

// Keeps all queues full until the stop or the goal, then waits for the outstanding atomics.
template <Node N>
void atomic_loop(N& node, AtomicState& s, const RunControl& control, ThreadTally& tally) {
  MeasuredInterval interval(tally, s.goal);
  IdleWait wait(s.cq, s.channel, tally);
  std::uint64_t ops = 0;
  const auto outstanding = [&s] {
    return std::ranges::any_of(s.queues, [](const SendQueue& queue) { return queue.room < queue.depth; });
  };
  for (bool running = true; running || outstanding();) {
    for (std::uint32_t i = 0; running && i < s.queues.size(); ++i) {
      if (!post_atomics(s, i, tally.end)) return;
    }
    const int count = take_completions<kCompletionBatch>(
        s.cq, interval.left(ops), tally.end, [&s](const ibv_wc& wc) { retire_atomic(s, sent_queue(wc.wr_id)); });
    if (count < 0) return;
    if (count == 0) {
      if (!wait.idle_unless_quit(node, control)) return;
      continue;
    }
    ops += static_cast<std::uint64_t>(count);
    tally.done_ops.store(ops, std::memory_order_relaxed);
    if (interval.see(node, control.phase.load(std::memory_order_relaxed), ops)) running = false;
  }
}

}  // namespace verbscope
