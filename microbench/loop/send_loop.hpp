// The data path of a thread that sends: post while a queue has room, reap completions when none has. Prebuilt requests,
// no allocation, no virtual call; specialised on what is constant for a point. Inlining, opcode and addressing are in
// the prebuilt requests and cost the loop nothing; remote addresses move on when a ring begins again. The requests of a
// queue's ring say which of them are signaled (send_ring.hpp).
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <span>
#include <utility>

#include "common/ring.hpp"
#include "microbench/bench/control.hpp"
#include "microbench/loop/completions.hpp"
#include "microbench/loop/idle_wait.hpp"
#include "microbench/loop/payload.hpp"
#include "microbench/loop/post.hpp"
#include "microbench/loop/queue_intervals.hpp"
#include "microbench/loop/recv_loop.hpp"
#include "microbench/loop/send_queue.hpp"

namespace verbscope {

struct SendState {
  ibv_cq* cq = nullptr;
  std::span<SendQueue> queues;
  Ring<SendQueue*> ready;  // queues with room for a list, in turn; used with several
  std::uint32_t ready_head = 0;
  std::uint32_t ready_tail = 0;
  std::uint32_t post_list = 1;
  std::uint32_t signal_every = 1;
  std::uint64_t goal = MeasuredInterval::kNoGoal;  // operations to measure, as many on each queue
  std::span<IntervalBounds> windows;               // of each queue, where completions stand for many of its operations
  ibv_comp_channel* channel = nullptr;             // sleep there when nothing completes
  std::uint64_t random_turn = 0;  // not 0: queues are taken at random instead of in turn; the generator's state
  PayloadChecker* checker = nullptr;
  std::uint64_t checked = 0;      // READs that were validated
  std::uint64_t wrong = 0;        // READs that the checker refused
  RecvState* arrivals = nullptr;  // the thread receives, too, on the same completion queue
  bool check_arrivals = false;
};

struct SendTraits {
  bool single_post = false;  // post lists of one
  bool each_signaled = false;
  bool one_queue = false;
  bool builder = false;    // ibv_wr_* instead of ibv_post_send
  bool validated = false;  // READs are checked by the bytes that they bring
  bool receives = false;   // messages come, too
};

// Posts the next list of `q`, which has room for it. False, with `end` set: the post failed.
template <SendTraits traits>
inline bool post_next_list(SendQueue& q, std::uint32_t list, RunEnd& end) {
  const int error = traits.builder ? post_list(q.builder, q.next) : post_list(q.qp, q.next);
  if (!post_succeeded(error, q.index, end)) [[unlikely]]
    return false;
  q.room -= list;
  q.next += list;
  if (q.wrap() && q.walk != nullptr) q.walk->point(q.next, static_cast<std::uint32_t>(q.ring.size()));
  return true;
}

// Brings a queue at random to the front of those that are ready (xorshift64, Marsaglia 2003).
inline void pick_at_random(SendState& s) {
  s.random_turn ^= s.random_turn << 13;
  s.random_turn ^= s.random_turn >> 7;
  s.random_turn ^= s.random_turn << 17;
  const std::uint64_t waiting = s.ready_tail - s.ready_head;
  const auto chosen = s.ready_head + static_cast<std::uint32_t>((s.random_turn >> 32) * waiting >> 32);
  std::swap(s.ready[s.ready_head], s.ready[chosen]);
}

// Posts until no queue has room for a list. False: a post failed, and `end` says how.
template <SendTraits traits>
inline bool post_while_room(SendState& s, RunEnd& end) {
  const std::uint32_t list = traits.single_post ? 1 : s.post_list;
  if constexpr (traits.one_queue) {
    SendQueue& q = s.queues.front();
    while (q.room >= list) {
      if (!post_next_list<traits>(q, list, end)) [[unlikely]]
        return false;
    }
  } else {
    while (s.ready_head != s.ready_tail) {
      if (s.random_turn != 0) pick_at_random(s);
      SendQueue& q = *s.ready[s.ready_head++];
      if (!post_next_list<traits>(q, list, end)) [[unlikely]]
        return false;
      if (q.room >= list) s.ready[s.ready_tail++] = &q;
    }
  }
  return true;
}

// Checks the bytes of the `count` READs that are complete next.
inline void check_reads(SendState& s, SendQueue& q, std::uint32_t count) {
  for (std::uint32_t i = 0; i < count; ++i) {
    const ibv_send_wr& wr = q.ring[(q.completed() + i) % q.ring.size()];
    if (wr.num_sge != 0 && !s.checker->bytes_good(reinterpret_cast<std::byte*>(wr.sg_list->addr))) ++s.wrong;
  }
  s.checked += count;
}

// Counts a message that came while the thread sends.
inline bool take_arrival(SendState& s, const ibv_wc& wc, RunEnd& end) {
  return s.check_arrivals ? take_message<true, false>(*s.arrivals, wc, end)
                          : take_message<false, false>(*s.arrivals, wc, end);
}

// Completions that one poll took: in all, -1 for a failure, and without those of messages that came.
struct Retired {
  int all;
  int sent;
};

// Takes up to `most` completions; each retires signal_every requests of its queue, and is handed to
// `on_queue(queue)` then. A failure sets `end`.
template <SendTraits traits, class OnQueue>
[[gnu::always_inline]] inline Retired retire_sends(SendState& s, std::uint64_t most, RunEnd& end, OnQueue&& on_queue) {
  const std::uint32_t list = traits.single_post ? 1 : s.post_list;
  const std::uint32_t step = traits.each_signaled ? 1 : s.signal_every;
  int arrived = 0;
  const int count = take_completions<kRateBatch>(s.cq, most, end, [&](const ibv_wc& wc) {
    if constexpr (traits.receives) {
      if (!is_send_id(wc.wr_id)) {
        ++arrived;
        return take_arrival(s, wc, end);
      }
    }
    SendQueue& q = traits.one_queue ? s.queues.front() : s.queues[sent_queue(wc.wr_id)];
    if constexpr (traits.validated) check_reads(s, q, step);
    const bool was_ready = q.room >= list;
    q.room += step;
    if constexpr (!traits.one_queue) {
      if (!was_ready && q.room >= list) s.ready[s.ready_tail++] = &q;
    }
    on_queue(q);
    if constexpr (traits.receives) return true;
  });
  return {count, count - arrived};
}

template <SendTraits traits>
inline Retired retire_sends(SendState& s, std::uint64_t most, RunEnd& end) {
  return retire_sends<traits>(s, most, end, [](const SendQueue&) {});
}

// After a turn of the phase: notes the queues whose completions it takes. A loop spends little time here.
template <SendTraits traits, Node N>
[[gnu::noinline]] Retired retire_and_note(N& node, SendState& s, std::uint64_t most, QueueIntervals& interval,
                                          RunEnd& end) {
  const Picos now = node.now();
  return retire_sends<traits>(s, most, end, [&](const SendQueue& q) {
    if (interval.noting()) interval.note(q.index, now, q.completed());
  });
}

// Drains the queues after the measured interval: posts until the last request of each is a signaled one, and reaps
// everything.
template <SendTraits traits, Node N>
void drain_sends(N& node, SendState& s, const RunControl& control, ThreadTally& tally) {
  constexpr SendTraits kPlain{.builder = traits.builder, .validated = traits.validated, .receives = traits.receives};
  IdleWait wait(s.cq, s.channel, tally);
  std::uint64_t ops = tally.done_ops.load(std::memory_order_relaxed);
  for (;;) {
    bool open = false;
    for (SendQueue& q : s.queues) {
      while (q.posted() % s.signal_every != 0 && q.room >= s.post_list) {
        if (!post_next_list<kPlain>(q, s.post_list, tally.end)) return;
      }
      open = open || q.posted() % s.signal_every != 0 || q.room != q.depth;
    }
    if (!open) return;
    s.ready_head = s.ready_tail = 0;  // nobody looks there any more
    const Retired taken = retire_sends<kPlain>(s, kRateBatch, tally.end);
    if (taken.all < 0) return;
    if (taken.all == 0) {
      if (!wait.idle_unless_quit(node, control)) return;
      continue;
    }
    ops += static_cast<std::uint64_t>(taken.sent) * s.signal_every;
    tally.done_ops.store(ops, std::memory_order_relaxed);
  }
}

// Receives until the controller says that nothing more will come. What was sent is complete.
template <Node N>
void receive_on(N& node, SendState& s, const RunControl& control, ThreadTally& tally) {
  IdleWait wait(s.cq, s.channel, tally);
  std::uint64_t arrived = 0;
  for (const RecvLane& queue : s.arrivals->queues) arrived += queue.received;
  tally.arrived.store(arrived, std::memory_order_relaxed);
  tally.set_drained();
  for (;;) {
    const int count = take_completions<kRateBatch>(s.cq, kRateBatch, tally.end,
                                                   [&](const ibv_wc& wc) { return take_arrival(s, wc, tally.end); });
    if (count < 0 || (count == 0 && control.quit.load(std::memory_order_relaxed))) return;
    if (count == 0) wait.idle(node);
    arrived += static_cast<std::uint64_t>(count);
    tally.arrived.store(arrived, std::memory_order_relaxed);
  }
}

// Sends until the phase is `stop` or the goal is reached, then drains. How it ended is in tally.end.
template <SendTraits traits, Node N>
void send_loop(N& node, SendState& s, const RunControl& control, ThreadTally& tally) {
  const std::uint64_t step = traits.each_signaled ? 1 : s.signal_every;
  QueueIntervals interval(tally, s.goal, s.windows);
  IdleWait wait(s.cq, s.channel, tally);
  std::uint64_t ops = 0;
  for (;;) {
    if (!post_while_room<traits>(s, tally.end)) [[unlikely]]
      return;
    const std::uint64_t left = interval.left(ops);
    const std::uint64_t most = left >= kRateBatch * step ? kRateBatch : left / step;
    Retired taken;
    if (interval.noting()) [[unlikely]] {
      taken = retire_and_note<traits>(node, s, most, interval, tally.end);
      if (taken.all >= 0 && interval.reached()) {  // a failure ends the loop below
        tally.done_ops.store(ops + static_cast<std::uint64_t>(taken.sent) * step, std::memory_order_relaxed);
        break;
      }
    } else {
      taken = retire_sends<traits>(s, most, tally.end);
    }
    if (taken.sent <= 0) [[unlikely]] {
      if (taken.all < 0 || (taken.all == 0 && !wait.idle_unless_quit(node, control))) return;
      interval.look(node, control.phase.load(std::memory_order_relaxed), ops);
      continue;
    }
    ops += static_cast<std::uint64_t>(taken.sent) * step;
    tally.done_ops.store(ops, std::memory_order_relaxed);
    if (interval.see(node, control.phase.load(std::memory_order_relaxed), ops)) break;
  }
  drain_sends<traits>(node, s, control, tally);
  if constexpr (traits.receives) {
    if (tally.end.kind == EndKind::finished) receive_on(node, s, control, tally);
  }
}

}  // namespace verbscope
