// The data path of verb_latency: one operation at a time, timed from before the post to the response. The response is a
// completion (READ, atomics), a byte in memory (WRITE) or a message (SEND).
//
// A WRITE is detected by its last byte, a count that both sides increase. Messages of any size end at the same address,
// so the polled byte holds the count of the message before until the next one arrives.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <cstring>
#include <span>

#include "common/histogram.hpp"
#include "microbench/loop/send_queue.hpp"

namespace verbscope {

// The count in the last byte of a message: never 0, as in zeroed memory, and never that of the message before.
constexpr std::uint8_t mark_of_trip(std::uint64_t trip) {
  return static_cast<std::uint8_t>(1 + trip % 255);
}

// One side of the trips of a thread.
struct LatencyState {
  SendQueue queue;
  ibv_cq* cq = nullptr;
  ibv_comp_channel* channel = nullptr;
  std::uint32_t bytes = 0;  // of each message
  ibv_sge segment{};
  ibv_send_wr request{};
  Histogram histogram;
  std::uint64_t goal = MeasuredInterval::kNoGoal;  // samples; kNoGoal: as many as the time allows
  std::byte* inbox_end = nullptr;                  // messages of WRITE and READ end here
  std::byte* outbox_end = nullptr;                 // outgoing messages end here
  // SEND: all RECVs have the same buffer; each is posted again before the next message.
  ibv_recv_wr recv{};
  std::byte* recv_payload = nullptr;
  std::uint64_t arrived = 0;  // messages received
  ibv_wc last{};              // completion of the last
  std::uint32_t grh = 0;      // bytes of the GRH, which are part of the length of a message
  // Validation: the end of the expected bytes; null: none.
  const std::byte* pattern_end = nullptr;
  std::uint64_t checked = 0, wrong = 0;
  bool atomic = false;        // the eight bytes before inbox_end are the returned value
  std::uint64_t divisor = 1;  // 2: half the round trip is recorded

  std::span<SendQueue> queues() { return {&queue, 1}; }
};

// The response is the completion.
struct CompletionTrip {
  template <Node N>
  static bool go(N& node, LatencyState& s, IdleWait& wait, const RunControl& control, RunEnd& end, std::uint64_t) {
    return post_one(s.queue, s.request, end) &&
           reap_until(node, s.cq, s.queues(), wait, control, end, kNoRecv, [&s] { return s.queue.due == 0; });
  }

  // An atomic adds one to this thread's counter and must return its value before; a READ returns the peer's bytes.
  static bool after(LatencyState& s, RunEnd&, std::uint64_t trip) {
    if (s.atomic) {
      ++s.checked;
      if (load_word<std::uint64_t>(s.inbox_end - sizeof(std::uint64_t)) != trip) ++s.wrong;
      s.request.wr.atomic.compare_add = s.request.opcode == IBV_WR_ATOMIC_CMP_AND_SWP ? trip + 1 : std::uint64_t{1};
      s.request.wr.atomic.swap = trip + 2;
    } else if (s.pattern_end != nullptr) {
      ++s.checked;
      if (std::memcmp(s.inbox_end - s.bytes, s.pattern_end - s.bytes, s.bytes) != 0) ++s.wrong;
      std::memset(s.inbox_end - s.bytes, 0, s.bytes);
    }
    return true;
  }
};

inline void check_message(LatencyState& s, std::byte* message, std::uint32_t bytes, std::uint32_t compared,
                          bool good = true) {
  ++s.checked;
  if (!good || std::memcmp(message, s.pattern_end - bytes, compared) != 0) ++s.wrong;
  std::memset(message, 0, compared);
}

// The response is a WRITE by the peer.
struct MemoryTrip {
  // Waits for the message of `trip`.
  template <Node N>
  static bool wait_for_mark(N& node, LatencyState& s, const RunControl& control, RunEnd& end, std::uint64_t trip) {
    return look_until(node, s.cq, s.queues(), control, end,
                      [&s, mark = mark_of_trip(trip)] { return load_word<std::uint8_t>(s.inbox_end - 1) == mark; });
  }
  // Posts the message of `trip`. If the queue is full, waits for completions of earlier signaled requests.
  template <Node N>
  static bool post(N& node, LatencyState& s, IdleWait& wait, const RunControl& control, RunEnd& end,
                   std::uint64_t trip) {
    store_word(s.outbox_end - 1, mark_of_trip(trip));
    if (s.queue.room == 0 &&
        !reap_until(node, s.cq, s.queues(), wait, control, end, kNoRecv, [&s] { return s.queue.room > 0; })) {
      return false;
    }
    return post_one(s.queue, s.request, end);
  }

  template <Node N>
  static bool go(N& node, LatencyState& s, IdleWait& wait, const RunControl& control, RunEnd& end, std::uint64_t trip) {
    return post(node, s, wait, control, end, trip) && wait_for_mark(node, s, control, end, trip);
  }

  static bool after(LatencyState& s, RunEnd& end, std::uint64_t) {
    if (s.pattern_end != nullptr) check_message(s, s.inbox_end - s.bytes, s.bytes, s.bytes - 1);
    return s.queue.due == 0 || reap(s.cq, s.queues(), end, kNoRecv) >= 0;
  }
};

// The response is a message.
struct MessageTrip {
  template <Node N>
  static bool wait_for_message(N& node, LatencyState& s, IdleWait& wait, const RunControl& control, RunEnd& end,
                               std::uint64_t trip) {
    const auto count = [&s](const ibv_wc& wc) {
      ++s.arrived;
      s.last = wc;
      return true;
    };
    return reap_until(node, s.cq, s.queues(), wait, control, end, count,
                      [&s, trip] { return s.arrived > trip && s.queue.room > 0; });
  }

  template <Node N>
  static bool go(N& node, LatencyState& s, IdleWait& wait, const RunControl& control, RunEnd& end, std::uint64_t trip) {
    return post_one(s.queue, s.request, end) && wait_for_message(node, s, wait, control, end, trip);
  }

  static bool repost(LatencyState& s, RunEnd& end) {
    return post_succeeded(post_recv_list(s.queue.qp, &s.recv), 0, end);
  }

  // The expected length, immediate and bytes are those of this side's own messages.
  static void check(LatencyState& s) {
    const bool immediate = s.request.opcode == IBV_WR_SEND_WITH_IMM;
    const bool good = s.last.byte_len == s.grh + s.bytes && ((s.last.wc_flags & IBV_WC_WITH_IMM) != 0) == immediate &&
                      (!immediate || s.last.imm_data == s.request.imm_data);
    check_message(s, s.recv_payload, s.bytes, s.bytes, good);
  }

  static bool after(LatencyState& s, RunEnd& end, std::uint64_t) {
    if (s.pattern_end != nullptr) check(s);
    return repost(s, end);
  }
};

// The side that is timed. Ends after the stop, or with its last sample, when all its requests are complete.
template <class Trip, Node N>
void latency_loop(N& node, LatencyState& s, const RunControl& control, ThreadTally& tally) {
  MeasuredInterval interval(tally, MeasuredInterval::kNoGoal);
  IdleWait wait(s.cq, s.channel, tally);
  node.watch(s.inbox_end - 1, 1);
  for (std::uint64_t trip = 0;; ++trip) {
    const Picos begin = node.now();
    if (!Trip::go(node, s, wait, control, tally.end, trip)) [[unlikely]]
      return;
    const Picos time = node.now() - begin;
    if (tally.opened() && s.histogram.count() < s.goal) s.histogram.record(time / s.divisor);
    if (!Trip::after(s, tally.end, trip)) [[unlikely]]
      return;
    tally.done_ops.store(trip + 1, std::memory_order_relaxed);
    const Phase phase = s.histogram.count() == s.goal ? Phase::stop : control.phase.load(std::memory_order_relaxed);
    if (interval.see(node, phase, trip + 1)) break;
  }
  reap_until(node, s.cq, s.queues(), wait, control, tally.end, kNoRecv, [&s] { return s.queue.due == 0; });
}

// The side that responds to each WRITE by a WRITE, until RunControl::quit.
template <Node N>
void write_responder(N& node, LatencyState& s, const RunControl& control, ThreadTally& tally) {
  IdleWait wait(s.cq, nullptr, tally);
  node.watch(s.inbox_end - 1, 1);
  for (std::uint64_t trip = 0;; ++trip) {
    if (!MemoryTrip::wait_for_mark(node, s, control, tally.end, trip)) return;
    if (s.pattern_end != nullptr) check_message(s, s.inbox_end - s.bytes, s.bytes, s.bytes - 1);
    if (!MemoryTrip::post(node, s, wait, control, tally.end, trip)) return;
    tally.done_ops.store(trip + 1, std::memory_order_relaxed);
    if (s.queue.due > 0 && reap(s.cq, s.queues(), tally.end, kNoRecv) < 0) return;
  }
}

// The side that responds to each SEND by a SEND.
template <Node N>
void send_responder(N& node, LatencyState& s, const RunControl& control, ThreadTally& tally) {
  IdleWait wait(s.cq, s.channel, tally);
  for (std::uint64_t trip = 0;; ++trip) {
    if (!MessageTrip::wait_for_message(node, s, wait, control, tally.end, trip)) return;
    // Check before the response: the next message overwrites this one.
    if (s.pattern_end != nullptr) MessageTrip::check(s);
    if (!post_one(s.queue, s.request, tally.end)) return;
    tally.done_ops.store(trip + 1, std::memory_order_relaxed);
    if (!MessageTrip::repost(s, tally.end)) return;
  }
}

}  // namespace verbscope
