// The data path of verb_latency: one operation at a time, timed from before the post to the answer. The answer is a
// completion (READ, atomics), a byte in memory (WRITE) or a message (SEND).
//
// A WRITE is detected by its last byte, which both sides count up in turn; messages end at the same address whatever
// their size, so that the byte that is polled holds the count of the message before, and nothing else.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <cstring>
#include <span>

#include "common/histogram.hpp"
#include "microbench/loop/lane_queue.hpp"

namespace verbscope {

// One size of the sweep.
struct LatencyPoint {
  std::uint32_t bytes = 0;
  ibv_sge segment{};
  ibv_send_wr request{};
  Histogram histogram;
};

// Sizes take turns: so many trips each, of which the first few only warm up when there are several sizes.
inline constexpr std::uint64_t kTripsPerTurn = 64;
inline constexpr std::uint64_t kWarmTrips = 4;
constexpr std::size_t point_of_trip(std::uint64_t trip, std::size_t points) {
  return trip / kTripsPerTurn % points;
}
constexpr bool counts_trip(std::uint64_t trip, std::size_t points) {
  return points == 1 || trip % kTripsPerTurn >= kWarmTrips;
}

// The count that a message carries: never 0, which untouched memory holds, and never that of its predecessor.
constexpr std::uint8_t mark_of_trip(std::uint64_t trip) {
  return static_cast<std::uint8_t>(1 + trip % 255);
}

// One thread's end of the trips.
struct LatencyState {
  LaneQueue queue;
  ibv_cq* cq = nullptr;
  ibv_comp_channel* channel = nullptr;
  std::span<LatencyPoint> points;
  std::uint64_t goal = MeasuredWindow::kNoGoal;  // samples of each size; as many as the time allows
  std::byte* inbox_end = nullptr;                // messages of WRITE and READ end here
  std::byte* outbox_end = nullptr;               // messages that go out end here
  // SEND: one RECV is taken and posted again at a time, all into the same place.
  ibv_recv_wr recv{};
  std::byte* recv_payload = nullptr;
  std::uint64_t arrived = 0;  // messages received
  ibv_wc last{};              // completion of the last
  std::uint32_t grh = 0;      // bytes of the GRH, which the length of a message counts too
  // Validation: what the longest message holds ends here; null: none.
  const std::byte* pattern_end = nullptr;
  std::uint64_t checked = 0, wrong = 0;
  bool atomic = false;        // the eight bytes before inbox_end are what the operation returned
  std::uint64_t divisor = 1;  // 2: half the round trip is recorded

  std::span<LaneQueue> queues() { return {&queue, 1}; }
};

// The answer is the completion.
struct CompletionTrip {
  template <Node N>
  static bool go(N& node, LatencyState& s, IdleWait& wait, const RunControl& control, RunEnd& end, LatencyPoint& point,
                 std::uint64_t) {
    return post_one(s.queue, point.request, 0, end) &&
           reap_until(node, s.cq, s.queues(), wait, control, end, kNoRecv, [&s] { return s.queue.due == 0; });
  }

  // An atomic adds one to a counter of its own and must return what it was; a READ brings the peer's bytes.
  static bool after(LatencyState& s, RunEnd&, LatencyPoint& point, std::uint64_t trip) {
    if (s.atomic) {
      ++s.checked;
      if (load_word<std::uint64_t>(s.inbox_end - sizeof(std::uint64_t)) != trip) ++s.wrong;
      point.request.wr.atomic.compare_add =
          point.request.opcode == IBV_WR_ATOMIC_CMP_AND_SWP ? trip + 1 : std::uint64_t{1};
      point.request.wr.atomic.swap = trip + 2;
    } else if (s.pattern_end != nullptr) {
      ++s.checked;
      if (std::memcmp(s.inbox_end - point.bytes, s.pattern_end - point.bytes, point.bytes) != 0) ++s.wrong;
      std::memset(s.inbox_end - point.bytes, 0, point.bytes);
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

// The answer is a WRITE by the peer.
struct MemoryTrip {
  // Waits for the message of `trip`.
  template <Node N>
  static bool wait_for_mark(N& node, LatencyState& s, const RunControl& control, RunEnd& end, std::uint64_t trip) {
    return look_until(node, s.cq, s.queues(), control, end,
                      [&s, mark = mark_of_trip(trip)] { return load_word<std::uint8_t>(s.inbox_end - 1) == mark; });
  }
  // Posts the message of `trip`. Requests that were signaled before have completed by now; a full queue waits for them.
  template <Node N>
  static bool post(N& node, LatencyState& s, IdleWait& wait, const RunControl& control, RunEnd& end,
                   LatencyPoint& point, std::uint64_t trip) {
    store_word(s.outbox_end - 1, mark_of_trip(trip));
    if (s.queue.room == 0 &&
        !reap_until(node, s.cq, s.queues(), wait, control, end, kNoRecv, [&s] { return s.queue.room > 0; })) {
      return false;
    }
    return post_one(s.queue, point.request, 0, end);
  }

  template <Node N>
  static bool go(N& node, LatencyState& s, IdleWait& wait, const RunControl& control, RunEnd& end, LatencyPoint& point,
                 std::uint64_t trip) {
    return post(node, s, wait, control, end, point, trip) && wait_for_mark(node, s, control, end, trip);
  }

  static bool after(LatencyState& s, RunEnd& end, LatencyPoint& point, std::uint64_t) {
    if (s.pattern_end != nullptr) check_message(s, s.inbox_end - point.bytes, point.bytes, point.bytes - 1);
    return s.queue.due == 0 || reap(s.cq, s.queues(), end, kNoRecv) >= 0;
  }
};

// The answer is a message.
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
  static bool go(N& node, LatencyState& s, IdleWait& wait, const RunControl& control, RunEnd& end, LatencyPoint& point,
                 std::uint64_t trip) {
    return post_one(s.queue, point.request, 0, end) && wait_for_message(node, s, wait, control, end, trip);
  }

  static bool repost(LatencyState& s, RunEnd& end) {
    return post_succeeded(post_recv_list(s.queue.qp, &s.recv), 0, end);
  }

  // Length, immediate and bytes are those of the message that goes the other way.
  static void check(LatencyState& s, const LatencyPoint& point) {
    const bool immediate = point.request.opcode == IBV_WR_SEND_WITH_IMM;
    const bool good = s.last.byte_len == s.grh + point.bytes &&
                      ((s.last.wc_flags & IBV_WC_WITH_IMM) != 0) == immediate &&
                      (!immediate || s.last.imm_data == point.request.imm_data);
    check_message(s, s.recv_payload, point.bytes, point.bytes, good);
  }

  static bool after(LatencyState& s, RunEnd& end, LatencyPoint& point, std::uint64_t) {
    if (s.pattern_end != nullptr) check(s, point);
    return repost(s, end);
  }
};

// The side that is timed. Ends after the stop, or when every size has its samples, and when all its requests are
// complete.
template <class Trip, Node N>
void latency_loop(N& node, LatencyState& s, const RunControl& control, ThreadTally& tally) {
  MeasuredWindow window(tally, MeasuredWindow::kNoGoal);
  std::size_t unfinished = s.points.size();
  IdleWait wait(s.cq, s.channel, tally);
  node.watch(s.inbox_end - 1, 1);
  for (std::uint64_t trip = 0;; ++trip) {
    LatencyPoint& point = s.points[point_of_trip(trip, s.points.size())];
    const Picos begin = node.now();
    if (!Trip::go(node, s, wait, control, tally.end, point, trip)) [[unlikely]]
      return;
    const Picos time = node.now() - begin;
    if (tally.opened() && counts_trip(trip, s.points.size()) && point.histogram.count() < s.goal) {
      point.histogram.record(time / s.divisor);
      if (point.histogram.count() == s.goal) --unfinished;
    }
    if (!Trip::after(s, tally.end, point, trip)) [[unlikely]]
      return;
    tally.done_ops.store(trip + 1, std::memory_order_relaxed);
    const Phase phase = unfinished == 0 ? Phase::stop : control.phase.load(std::memory_order_relaxed);
    if (window.see(node, phase, trip + 1)) break;
  }
  reap_until(node, s.cq, s.queues(), wait, control, tally.end, kNoRecv, [&s] { return s.queue.due == 0; });
}

// The side that answers each WRITE by a WRITE, until told to quit.
template <Node N>
void write_responder(N& node, LatencyState& s, const RunControl& control, ThreadTally& tally) {
  IdleWait wait(s.cq, nullptr, tally);
  node.watch(s.inbox_end - 1, 1);
  for (std::uint64_t trip = 0;; ++trip) {
    LatencyPoint& point = s.points[point_of_trip(trip, s.points.size())];
    if (!MemoryTrip::wait_for_mark(node, s, control, tally.end, trip)) return;
    if (s.pattern_end != nullptr) check_message(s, s.inbox_end - point.bytes, point.bytes, point.bytes - 1);
    if (!MemoryTrip::post(node, s, wait, control, tally.end, point, trip)) return;
    tally.done_ops.store(trip + 1, std::memory_order_relaxed);
    if (s.queue.due > 0 && reap(s.cq, s.queues(), tally.end, kNoRecv) < 0) return;
  }
}

// The side that answers each SEND by a SEND.
template <Node N>
void send_responder(N& node, LatencyState& s, const RunControl& control, ThreadTally& tally) {
  IdleWait wait(s.cq, s.channel, tally);
  for (std::uint64_t trip = 0;; ++trip) {
    LatencyPoint& point = s.points[point_of_trip(trip, s.points.size())];
    if (!MessageTrip::wait_for_message(node, s, wait, control, tally.end, trip)) return;
    // It is checked before the answer, because the message that the answer calls forth comes to the same place.
    if (s.pattern_end != nullptr) MessageTrip::check(s, point);
    if (!post_one(s.queue, point.request, 0, tally.end)) return;
    tally.done_ops.store(trip + 1, std::memory_order_relaxed);
    if (!MessageTrip::repost(s, tally.end)) return;
  }
}

}  // namespace verbscope
