// How a worker of a server answers: by UD SEND on several QPs of each port in turn, one by one, or what one pass has
// collected as a list for each port, behind one doorbell or a few.
#pragma once

#include <infiniband/verbs.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "microbench/loop/lane_queue.hpp"

namespace verbscope {

// The send queue of one UD QP with as many prebuilt requests as it holds, of which every signal_every-th is signaled.
// Each carries 8 bytes of its own, inline.
struct AnswerQueue {
  LaneQueue lane;
  std::span<ibv_send_wr> requests;  // a multiple of signal_every
  std::uint32_t index = 0;          // among the queues of the thread
  std::uint32_t next = 0;           // request to use next
  ibv_send_wr* first = nullptr;     // the list in the making
  ibv_send_wr* last = nullptr;
  std::uint32_t count = 0;     // requests in that list
  std::uint32_t reserved = 0;  // places that the pass will use
};

// Lists that were posted, by their length.
struct BatchCounts {
  static constexpr std::uint32_t kLongest = 256;
  std::array<std::uint64_t, kLongest + 1> lists{};

  void count(std::uint32_t length) { ++lists[length]; }
};

// The next free request of the queue, which must have room, as the last of its list.
inline ibv_send_wr& append(AnswerQueue& q) {
  ibv_send_wr& wr = q.requests[q.next];
  q.next = q.next + 1 == q.requests.size() ? 0 : q.next + 1;
  (q.count == 0 ? q.first : q.last->next) = &wr;
  q.last = &wr;
  wr.next = nullptr;
  ++q.count;
  --q.lane.room;
  if ((wr.send_flags & IBV_SEND_SIGNALED) != 0) ++q.lane.due;
  return wr;
}

// Posts the list that was made, if any, behind a doorbell for each `most` of its answers.
inline bool post_answers(AnswerQueue& q, std::uint32_t most, BatchCounts* batches, RunEnd& end) {
  while (q.count > 0) {
    ibv_send_wr* const first = q.first;
    ibv_send_wr* last = first;
    const std::uint32_t length = std::min(q.count, most);
    for (std::uint32_t j = 1; j < length; ++j) last = last->next;
    q.first = last->next;
    q.count -= length;
    last->next = nullptr;
    q.lane.posted += length;
    if (batches != nullptr) batches->count(length);
    if (!post_list(q.lane.qp, q.lane.builder, first, q.index, end)) return false;
  }
  return true;
}

// The queues of one port, which take turns.
struct AnswerPort {
  std::span<AnswerQueue> queues;
  std::uint32_t turn = 0;

  AnswerQueue& current() { return queues[turn]; }
  void advance() { turn = turn + 1 == queues.size() ? 0 : turn + 1; }
};

// A worker's counts of the measured window.
struct WorkerCounts {
  BatchCounts batches;
  std::uint64_t passes = 0;
  std::uint64_t empty_passes = 0;
  std::uint64_t full_passes = 0;  // passes that found as much as a pass can take
  std::uint64_t blocked = 0;      // requests left for later because the send queue was full
};

// Takes completions of answers when a queue is half used. Returns how many, or -1 with `end` set.
inline int reap_answers(ibv_cq* cq, std::span<AnswerQueue> queues, RunEnd& end) {
  const auto half_used = [](const AnswerQueue& q) { return q.lane.room < (q.lane.depth + 1) / 2; };
  if (std::ranges::none_of(queues, half_used)) return 0;
  return take_completions<kCompletionBatch>(
      cq, kCompletionBatch, end, [queues](const ibv_wc& wc) { retire_signaled(queues[sent_queue(wc.wr_id)].lane); });
}

// Counts a pass that served `served` of at most `most` requests and left `blocked`.
inline void count_pass(WorkerCounts& counts, std::uint64_t served, std::uint64_t most, std::uint64_t blocked) {
  ++counts.passes;
  counts.blocked += blocked;
  if (served + blocked == 0) ++counts.empty_passes;
  if (served + blocked >= most - most / 10) ++counts.full_passes;
}

// Posts the lists of all ports.
inline bool post_all(std::span<AnswerPort> ports, std::uint32_t most, BatchCounts* batches, RunEnd& end) {
  for (AnswerPort& port : ports) {
    AnswerQueue& q = port.current();
    if (q.count == 0) continue;
    if (!post_answers(q, most, batches, end)) return false;
    port.advance();
  }
  return true;
}

}  // namespace verbscope
