// The data paths of `sequencer --design spec`, Spec-S0 of Kalia et al., ATC 2016, section 4.2.1: datagrams alone. A
// request is a header-only SEND whose immediate is the client's guess of the counter's high 32 bits. When the guess
// holds, the answer is a header-only SEND with the low 32 bits, otherwise a regular one with all 64.
//
// Nothing in an answer says to which request it belongs. It comes from the QP that was asked, which answers in order,
// so it is taken for the oldest request to that QP. When one was sent again, nobody knows whether its answer was lost
// or late: then an answer may be to an earlier request, and only what held for that one can be asked of it.
#pragma once

#include <endian.h>
#include <infiniband/verbs.h>

#include <cstdint>
#include <span>

#include "common/ring.hpp"
#include "microbench/loop/choice.hpp"
#include "microbench/loop/lane_queue.hpp"
#include "microbench/loop/recv_loop.hpp"
#include "systems/answers/inbox.hpp"
#include "systems/answers/qp_book.hpp"
#include "systems/answers/queue.hpp"
#include "systems/sequencer/receipts.hpp"

namespace verbscope {

// The value with these low 32 bits that is nearest to `near`.
constexpr std::uint64_t extend_value(std::uint32_t low, std::uint64_t near) {
  const auto distance = static_cast<std::int32_t>(low - static_cast<std::uint32_t>(near));
  return near + static_cast<std::uint64_t>(static_cast<std::int64_t>(distance));
}

// A client's requests to one QP of the server.
struct SpecLane {
  std::span<Asked> asked;  // request n in place n % size
  ibv_send_wr to{};        // where they go: wr.ud
  std::uint64_t sent = 0;
  std::uint64_t answered = 0;
  std::uint64_t doubts = 0;  // requests sent again without a surplus answer so far

  // The next answer, to its oldest request. The n-th answer is to the n-th SEND of this lane or to a later one, and
  // each doubt may be one of the SENDs before: its value is above all that the client had so many requests earlier.
  Asked answer() {
    Asked oldest = asked[answered % asked.size()];
    if (doubts > 0) [[unlikely]] {
      const bool known = doubts <= answered && sent - (answered - doubts) <= asked.size();
      oldest.floor = known ? asked[(answered - doubts) % asked.size()].floor : 0;
    }
    ++answered;
    return oldest;
  }
};

// Requests of a lane that are remembered beyond those outstanding.
inline constexpr std::uint32_t kSpecRemembered = 64;

class SpecAsker {
 public:
  ClientState* state = nullptr;
  std::span<SpecLane> lanes;
  const QpBook* book = nullptr;  // knows the lanes
  ibv_send_wr* request = nullptr;
  AnswerInbox inbox;
  std::uint32_t outstanding = 1;  // requests at most
  Choice choice{1, true, 0, 0};   // the lane to ask next

  std::uint32_t open() const { return open_; }

  bool ask(Picos now, RunEnd& end) {
    while (open_ < outstanding && state->queues[0].room > 0) {
      SpecLane& lane = lanes[choice.next()];
      if (!inbox.cover(++open_, end)) return false;
      lane.asked[lane.sent % lane.asked.size()] = {now, now, state->receipts.next, lane.sent, true};
      ++lane.sent;
      ++state->receipts.asked;
      if (!send(lane, end)) return false;
    }
    return true;
  }

  bool take(const ibv_wc& wc, Picos now, bool measured, RunEnd& end) {
    if (is_send_id(wc.wr_id)) return true;
    const std::uint64_t body = inbox.take(wc);
    const std::uint32_t from = book->find(wc);
    if (from == QpBook::kNobody) [[unlikely]] {
      ++state->receipts.repeated;
      return true;
    }
    const bool confirmed = (wc.wc_flags & IBV_WC_WITH_IMM) != 0;
    const std::uint64_t value = confirmed ? extend_value(be32toh(wc.imm_data), near_) : body;
    SpecLane& lane = lanes[from];
    if (lane.answered == lane.sent) {
      if (lane.doubts > 0) --lane.doubts;
      state->receipts.take_surplus(value);
    } else {
      --open_;
      state->receipts.take(value, lane.answer(), now, measured);
    }
    near_ = state->receipts.next - 1;
    return inbox.cover(open_, end);
  }

  // Asks again for the oldest request to each QP that has been silent for too long.
  bool ask_again(Picos now, RunEnd& end) {
    for (SpecLane& lane : lanes) {
      if (lane.answered == lane.sent) continue;
      Asked& oldest = lane.asked[lane.answered % lane.asked.size()];
      if (now - oldest.last < state->retry_after || state->queues[0].room == 0) continue;
      oldest.last = now;
      ++lane.doubts;
      ++state->receipts.retries;
      if (!inbox.cover(open_ + 1, end) || !send(lane, end)) return false;
    }
    return true;
  }

 private:
  bool send(const SpecLane& lane, RunEnd& end) {
    request->wr.ud = lane.to.wr.ud;
    request->imm_data = htobe32(static_cast<std::uint32_t>(near_ >> 32));
    return post_one(state->queues[0], *request, 0, end);
  }

  std::uint32_t open_ = 0;
  // The largest value so far: what the guess comes from. At first, the middle of those that the guess 0 stands for.
  std::uint64_t near_ = std::uint64_t{1} << 31;
};

// A request that has been received.
struct SpecRequest {
  std::uint32_t client = 0;
  std::uint32_t guess = 0;
  std::uint32_t queue = 0;
};

struct SpecClient {
  ibv_send_wr to{};  // where its answers go: wr.ud
  std::uint32_t node = 0;
};

struct SpecWorker {
  ibv_cq* cq = nullptr;
  std::span<AnswerQueue> queues;
  std::span<RecvLane> recvs;  // the receive queues of the same QPs
  std::span<SpecClient> clients;
  const QpBook* book = nullptr;  // knows the clients
  Ring<SpecRequest> waiting;     // has room for all RECVs: none is posted again while the request that it took waits
  std::span<std::uint64_t> answered;  // answers to each client machine
  std::uint64_t* counter = nullptr;
  bool batching = true;
  std::uint32_t max_batch = 16;      // answers behind one doorbell
  std::uint64_t head = 0, tail = 0;  // positions in `waiting`
  std::uint64_t served = 0;
  std::uint64_t corrections = 0;
  std::uint64_t strangers = 0;
  WorkerCounts counts;
};

// Completions that a worker takes in one pass at most.
inline constexpr int kSpecBatch = 32;

// A RECV of queue `index` is done with: it is posted again with the others of its list. False: a post failed.
inline bool give_back_recv(SpecWorker& s, std::uint32_t index, RunEnd& end) {
  RecvLane& recvs = s.recvs[index];
  if (++recvs.consumed != recvs.list) return true;
  recvs.consumed = 0;
  return post_succeeded(post_next_recvs(recvs), index, end);
}

// Takes what has completed: requests into `waiting`. Returns how much, or -1 with `end` set.
inline int take_requests(SpecWorker& s, RunEnd& end) {
  return take_completions<kSpecBatch>(s.cq, kSpecBatch, end, [&](const ibv_wc& wc) {
    if (is_send_id(wc.wr_id)) {
      retire_signaled(s.queues[sent_queue(wc.wr_id)].lane);
      return true;
    }
    const std::uint32_t index = recv_queue(wc.wr_id);
    const std::uint32_t client = s.book->find(wc);
    if (client == QpBook::kNobody) [[unlikely]] {
      ++s.strangers;
      return give_back_recv(s, index, end);
    }
    s.waiting[s.tail++] = {client, be32toh(wc.imm_data), index};
    return true;
  });
}

inline void make_answer(SpecWorker& s, const SpecRequest& request, std::uint64_t value) {
  const SpecClient& client = s.clients[request.client];
  ibv_send_wr& wr = append(s.queues[request.queue]);
  wr.wr.ud = client.to.wr.ud;
  if (value >> 32 == request.guess) [[likely]] {
    wr.opcode = IBV_WR_SEND_WITH_IMM;
    wr.imm_data = htobe32(static_cast<std::uint32_t>(value));
    wr.num_sge = 0;
  } else {
    wr.opcode = IBV_WR_SEND;
    std::memcpy(reinterpret_cast<void*>(wr.sg_list->addr), &value, sizeof value);
    wr.num_sge = 1;
    ++s.corrections;
  }
  ++s.answered[client.node];
}

// Answers what waits, as far as the send queues have room, with one atomic add for all; one by one unless batching.
template <Node N>
inline bool answer_waiting(N& node, SpecWorker& s, bool measured, RunEnd& end) {
  for (AnswerQueue& queue : s.queues) queue.reserved = 0;
  std::uint64_t until = s.head;
  for (; until != s.tail; ++until) {
    const std::uint32_t index = s.waiting[until].queue;
    AnswerQueue& queue = s.queues[index];
    if (queue.reserved == queue.lane.room) break;
    ++queue.reserved;
    if (!give_back_recv(s, index, end)) return false;
  }
  if (until == s.head) return true;
  std::uint64_t value = node.fetch_add(*s.counter, until - s.head);
  BatchCounts* const batches = measured ? &s.counts.batches : nullptr;
  s.served += until - s.head;
  while (s.head != until) {
    const SpecRequest& request = s.waiting[s.head++];
    make_answer(s, request, value++);
    if (!s.batching && !post_answers(s.queues[request.queue], s.max_batch, batches, end)) return false;
  }
  for (AnswerQueue& queue : s.queues) {
    if (!post_answers(queue, s.max_batch, batches, end)) return false;
  }
  return true;
}

// Answers until told to quit; never waits for more requests than there are.
template <Node N>
void worker_loop(N& node, SpecWorker& s, const RunControl& control, ThreadTally& tally) {
  for (;;) {
    const bool measured = in_window(control.phase.load(std::memory_order_relaxed));
    const std::uint64_t before = s.served;
    const int completed = take_requests(s, tally.end);
    if (completed < 0 || !answer_waiting(node, s, measured, tally.end)) return;
    if (measured) count_pass(s.counts, s.served - before, kSpecBatch, s.tail - s.head);
    if (s.served != before) tally.done_ops.store(s.served, std::memory_order_relaxed);
    if (completed > 0) continue;
    if (must_give_up(control, tally.end)) return;
    node.relax();
  }
}

}  // namespace verbscope
