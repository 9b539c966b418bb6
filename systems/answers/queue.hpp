// How a worker of a server answers: by UD SEND on several QPs of each port in turn, one by one, or what one pass has
// collected as a list for each port, behind one doorbell or a few.
#pragma once

#include <infiniband/verbs.h>

#include <algorithm>
#include <cstdint>
#include <span>

#include "microbench/loop/answer_list.hpp"

namespace verbscope {

// The send queue of one UD QP with as many prebuilt requests as it holds, a multiple of signal_every. Each has bytes of
// its own to carry. They are used in turn, so that always the same are signaled, the last among them.
struct AnswerQueue {
  LaneQueue lane;
  std::span<ibv_send_wr> requests;
  std::uint32_t index = 0;                        // among the queues of the thread
  ibv_send_wr* next = requests.data();            // request to use next
  std::uint32_t to_signaled = lane.signal_every;  // requests until one that is signaled, which is the last of them
  AnswerList list{.first = requests.data()};      // begins with `next` when it is empty
  std::uint32_t reserved = 0;                     // places that the pass will use
  AnswerQueue* following = nullptr;               // that of its port which has the turn after it
};

// The next request of the queue, which must have room, takes its place there.
inline ibv_send_wr& take_next(AnswerQueue& q) {
  ibv_send_wr& wr = *q.next++;
  --q.lane.room;
  if (--q.to_signaled == 0) [[unlikely]] {
    wr.send_flags |= IBV_SEND_SIGNALED;
    ++q.lane.due;
    q.to_signaled = q.lane.signal_every;
    if (&wr == &q.requests.back()) q.next = q.requests.data();
  }
  return wr;
}

// The same, as the last of the queue's list.
inline ibv_send_wr& append(AnswerQueue& q) {
  ibv_send_wr& wr = take_next(q);
  wr.next = q.next;
  q.list.last = &wr;
  ++q.list.count;
  return wr;
}

// Takes the next request and posts it by itself; none of the queue has been in a list.
inline bool post_next(AnswerQueue& q, RunEnd& end) {
  ibv_send_wr* const wr = &take_next(q);
  const int error = q.lane.builder == nullptr ? post_list(q.lane.qp, wr) : post_list(q.lane.builder, wr);
  return error == 0 || post_succeeded(error, q.index, end);
}

// Posts the queue's list, if there is one, as post_answers of answer_list.hpp does.
inline bool post_answers(AnswerQueue& q, std::uint32_t most, BatchCounts* batches, RunEnd& end) {
  return post_answers(q.lane, q.list, most, q.index, batches, end);
}

// The queues of one port, which take turns.
class AnswerPort {
 public:
  explicit AnswerPort(std::span<AnswerQueue> queues) : turn_(queues.data()) {
    for (AnswerQueue& queue : queues) queue.following = &queue == &queues.back() ? queues.data() : &queue + 1;
  }
  AnswerQueue& current() { return *turn_; }
  void advance() { turn_ = turn_->following; }
  // The queue whose turn it is; then it is that of the next.
  AnswerQueue& take_turn() {
    AnswerQueue& queue = *turn_;
    turn_ = queue.following;
    return queue;
  }

 private:
  AnswerQueue* turn_;
};

// A worker's counts of the measured window.
struct WorkerCounts {
  BatchCounts batches;
  std::uint64_t passes = 0;
  std::uint64_t empty_passes = 0;
  std::uint64_t full_passes = 0;  // passes that found as much as a pass can take
  std::uint64_t blocked = 0;      // requests left for later because the send queue was full
};

// Places for answers that each of the queues has, whichever has the turn.
inline std::size_t least_room(std::span<const AnswerQueue> queues) {
  std::size_t room = queues.front().lane.room;
  for (const AnswerQueue& queue : queues) room = std::min<std::size_t>(room, queue.lane.room);
  return room;
}

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
