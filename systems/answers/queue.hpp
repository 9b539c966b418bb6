// How a worker of a server answers: by UD SEND on several QPs of each port in turn, one by one, or what one pass has
// collected as a list for each port, behind one doorbell or a few.
#pragma once

#include <infiniband/verbs.h>

#include <algorithm>
#include <cstdint>
#include <span>

#include "microbench/loop/answer_list.hpp"

namespace verbscope {

// The send queue of one UD QP with as many prebuilt requests as it holds. Each has bytes of its own to carry.
struct AnswerQueue {
  LaneQueue lane;
  std::span<ibv_send_wr> requests;
  std::uint32_t index = 0;  // among the queues of the thread
  std::uint32_t next = 0;   // request to use next
  AnswerList list{};
  std::uint32_t reserved = 0;  // places that the pass will use
};

// The next free request of the queue, which must have room.
inline ibv_send_wr& next_request(AnswerQueue& q) {
  ibv_send_wr& wr = q.requests[q.next];
  q.next = q.next + 1 == q.requests.size() ? 0 : q.next + 1;
  return wr;
}

// The same, as the last of the queue's list.
inline ibv_send_wr& append(AnswerQueue& q) {
  ibv_send_wr& wr = next_request(q);
  add_answer(q.lane, q.list, wr);
  return wr;
}

// Posts the queue's list, if there is one, as post_answers of answer_list.hpp does.
inline bool post_answers(AnswerQueue& q, std::uint32_t most, BatchCounts* batches, RunEnd& end) {
  return post_answers(q.lane, q.list, most, q.index, batches, end);
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
    if (q.list.count == 0) continue;
    if (!post_answers(q, most, batches, end)) return false;
    port.advance();
  }
  return true;
}

}  // namespace verbscope
