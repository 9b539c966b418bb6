// The data path of atomic_rate: keeps atomics outstanding on each QP and chooses a counter for each post.
#pragma once

#include <infiniband/verbs.h>

#include <algorithm>
#include <cstdint>
#include <span>

#include "microbench/loop/choice.hpp"
#include "microbench/loop/request_loop.hpp"
#include "microbench/loop/send_queue.hpp"

namespace verbscope {

// The result and the counter of each request in the ring of a send queue. Atomics of a QP complete in order: the oldest
// is request completed() % ring.size().
struct AtomicPlaces {
  std::span<std::uint64_t> results;  // returned by each request
  std::span<std::uint64_t> counter;  // index of the counter of each request
  std::uint64_t base = 0;            // address of the peer's first counter
};

// The state of a client, as client_loop() calls it.
struct AtomicState : ClientLoopState {
  std::span<SendQueue> queues;
  std::span<AtomicPlaces> places;  // by queue
  Choice choice{1, false, 0, 0};
  std::uint64_t stride = 8;
  // Compare-and-swap: the last known value of each counter. A swap replaces this value by the next one.
  std::span<std::uint64_t> seen;
  std::uint64_t swapped = 0;

  // Fills all queues.
  template <Node N>
  bool ask(N& node, RunEnd& end);
  bool drained() const {
    return std::ranges::none_of(queues, [](const SendQueue& queue) { return queue.room < queue.depth; });
  }
  template <Node N>
  int take(N& node, OperationMeter& meter, RunEnd& end);
  template <Node N>
  bool wait(N& node, IdleWait& idle, RunEnd&) {
    idle.idle(node);
    return true;
  }
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

template <Node N>
bool AtomicState::ask(N&, RunEnd& end) {
  for (std::uint32_t i = 0; i < queues.size(); ++i) {
    if (!post_atomics(*this, i, end)) return false;
  }
  return true;
}

template <Node N>
int AtomicState::take(N& node, OperationMeter& meter, RunEnd& end) {
  const int count = take_completions<kCompletionBatch>(
      cq, meter.left(), end, [this](const ibv_wc& wc) { retire_atomic(*this, sent_queue(wc.wr_id)); });
  if (count > 0) {
    meter.add(static_cast<std::uint64_t>(count));
    meter.note(node, meter.phase());
  }
  return count;
}

}  // namespace verbscope
