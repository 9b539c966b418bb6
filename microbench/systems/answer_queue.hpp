// How a sequencer's worker answers: by UD SEND on several QPs of each port in turn, one by one, or what one pass has
// collected as a list for each port, behind one doorbell.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cstdint>
#include <span>

#include "microbench/paths/lane_queue.hpp"
#include "microbench/systems/sequence_receipts.hpp"

namespace verbscope {

// The send queue of one UD QP with as many prebuilt requests as it holds, of which every signal_every-th is signaled.
// Each carries 8 bytes of its own, inline.
struct AnswerQueue {
  LaneQueue lane;
  std::span<ibv_send_wr> requests;  // a multiple of signal_every
  std::uint32_t index = 0;          // among the queues of the thread
  std::uint32_t next = 0;           // request to use next
  ibv_send_wr* first = nullptr;     // of the list in the making
  ibv_send_wr* last = nullptr;
  std::uint32_t count = 0;     // in that list
  std::uint32_t reserved = 0;  // places that the pass will use
};

// Lists that were posted, by their length; the last place counts longer ones too.
struct BatchCounts {
  static constexpr std::size_t kLongest = 256;
  std::array<std::uint64_t, kLongest + 1> lists{};

  void count(std::uint32_t length) { ++lists[std::min<std::size_t>(length, kLongest)]; }
};

// The next free request of the queue, which must have room, as the last of its list.
inline ibv_send_wr& append(AnswerQueue& q) {
  ibv_send_wr& wr = q.requests[q.next];
  q.next = q.next + 1 == q.requests.size() ? 0 : q.next + 1;
  (q.count == 0 ? q.first : q.last->next) = &wr;
  q.last = &wr;
  ++q.count;
  --q.lane.room;
  if ((wr.send_flags & IBV_SEND_SIGNALED) != 0) ++q.lane.due;
  return wr;
}

// Posts the list that was made, if any, and counts it.
inline bool post_answers(AnswerQueue& q, BatchCounts* batches, RunEnd& end) {
  if (q.count == 0) return true;
  if (batches != nullptr) batches->count(q.count);
  q.last->next = nullptr;
  q.lane.posted += q.count;
  q.count = 0;
  const int error = q.lane.builder != nullptr ? post_list(q.lane.builder, q.first) : post_list(q.lane.qp, q.first);
  return error == 0 || fail_post(end, error, q.index);
}

// Those of one port, used in turn.
struct AnswerPort {
  std::span<AnswerQueue> queues;
  std::uint32_t turn = 0;

  AnswerQueue& current() { return queues[turn]; }
  void advance() { turn = turn + 1 == queues.size() ? 0 : turn + 1; }
};

// What a worker counted while it was measured.
struct WorkerCounts {
  BatchCounts batches;
  std::uint64_t passes = 0;
  std::uint64_t empty_passes = 0;
  std::uint64_t full_passes = 0;  // that found as much as a pass can take
  std::uint64_t blocked = 0;      // requests left for later because the send queue was full
};

// A signaled request of queue `index` has completed, and those before it.
inline void retire(std::span<AnswerQueue> queues, std::uint32_t index) {
  LaneQueue& lane = queues[index].lane;
  lane.room += lane.signal_every;
  --lane.due;
}

// A pass that served `served` of at most `most` requests and left `blocked`.
inline void count_pass(WorkerCounts& counts, std::uint64_t served, std::uint64_t most, std::uint64_t blocked) {
  ++counts.passes;
  counts.blocked += blocked;
  if (served + blocked == 0) ++counts.empty_passes;
  if (served + blocked >= most - most / 10) ++counts.full_passes;
}

// Sends the lists of all ports.
inline bool post_all(std::span<AnswerPort> ports, BatchCounts* batches, RunEnd& end) {
  for (AnswerPort& port : ports) {
    AnswerQueue& q = port.current();
    if (q.count == 0) continue;
    if (!post_answers(q, batches, end)) return false;
    port.advance();
  }
  return true;
}

}  // namespace verbscope
