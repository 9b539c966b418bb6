// The data paths of `sequencer --design spec`, Spec-S0 of Kalia et al., ATC 2016, section 4.2.1: only datagrams. A
// request is a header-only SEND whose immediate is the client's guess of the counter's high 32 bits. When the guess
// holds, the answer is a header-only SEND with the low 32 bits, otherwise a regular one with all 64.
//
// A response does not name its request. A QP answers in order, so a response from it belongs to the oldest request to
// it. After a request was resent, its first response may be lost or only late. Then a response may belong to an earlier
// request, and is checked by the bound of that one.
#pragma once

#include <endian.h>
#include <infiniband/verbs.h>

#include <algorithm>
#include <cstdint>
#include <span>

#include "common/ring.hpp"
#include "microbench/loop/choice.hpp"
#include "microbench/loop/recv_loop.hpp"
#include "microbench/loop/send_queue.hpp"
#include "systems/requests/client.hpp"
#include "systems/requests/peers.hpp"
#include "systems/requests/server.hpp"
#include "systems/sequencer/receipts.hpp"

namespace verbscope {

// The value with these low 32 bits that is nearest to `near`.
constexpr std::uint64_t extend_value(std::uint32_t low, std::uint64_t near) {
  const auto distance = static_cast<std::int32_t>(low - static_cast<std::uint32_t>(near));
  return near + static_cast<std::uint64_t>(static_cast<std::int64_t>(distance));
}

// A client's requests to one QP of the server.
struct SpecLane : RequestLane<Asked> {
  UdAddress to{};
  std::uint64_t answered = 0;
  std::uint64_t doubts = 0;  // requests resent without a surplus response so far

  // The next response, to its oldest request. The n-th response answers the n-th SEND of this lane or a later one, and
  // each doubt may shift it by one SEND: its value is above all that the client had `doubts` requests earlier.
  Asked answer() {
    Asked oldest = slots[answered % slots.size()];
    if (doubts > 0) [[unlikely]] {
      const bool known = doubts <= answered && sent - (answered - doubts) <= slots.size();
      oldest.floor = known ? slots[(answered - doubts) % slots.size()].floor : 0;
    }
    ++answered;
    return oldest;
  }
};

// Requests of a lane that are remembered beyond the outstanding ones.
inline constexpr std::uint32_t kSpecRemembered = 64;

class SpecAsker : public RequestAsker {
 public:
  ClientState* state = nullptr;
  std::span<SpecLane> lanes;
  const QpIndex* qps = nullptr;  // of the lanes
  ibv_send_wr* request = nullptr;
  Choice choice{1, true, 0, 0};  // the lane of the next request

  bool ask(Picos now, RunEnd& end) {
    while (may_ask(state->queues[0])) {
      SpecLane& lane = lanes[choice.next()];
      if (!open_one(end)) return false;
      state->receipts.ask(lane.begin(now), now);
      if (!send(lane, end)) return false;
    }
    return true;
  }

  bool take(const ibv_wc& wc, Picos now, bool measured, RunEnd& end) {
    if (is_send_id(wc.wr_id)) return true;
    const std::uint64_t body = recvs.take(wc);
    const std::uint32_t from = qps->find(wc);
    if (from == QpIndex::kNotFound) [[unlikely]] {
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
      close_one();
      state->receipts.take(value, lane.answer(), now, measured);
    }
    near_ = state->receipts.next - 1;
    return cover(end);
  }

  // Resends the oldest request to each QP that has been silent for too long.
  bool ask_again(Picos now, RunEnd& end) {
    for (SpecLane& lane : lanes) {
      if (lane.answered == lane.sent) continue;
      Asked& oldest = lane.slots[lane.answered % lane.slots.size()];
      if (now - oldest.last < state->retry_after || state->queues[0].room == 0) continue;
      oldest.last = now;
      ++lane.doubts;
      ++state->receipts.retries;
      if (!cover(end, 1) || !send(lane, end)) return false;
    }
    return true;
  }

 private:
  bool send(const SpecLane& lane, RunEnd& end) {
    request->wr.ud = lane.to;
    request->imm_data = htobe32(static_cast<std::uint32_t>(near_ >> 32));
    return post_one(state->queues[0], *request, end);
  }

  // The largest value so far, from which the guess is derived. Initially the middle of the values with the guess 0.
  std::uint64_t near_ = std::uint64_t{1} << 31;
};

// A request that has been received.
struct SpecRequest {
  std::uint32_t client = 0;
  std::uint32_t guess = 0;
  std::uint32_t queue = 0;
};

struct SpecWorker : RequestServer {
  std::span<std::uint32_t> reserved;  // room of each queue that this pass will use
  std::span<RecvLane> recvs;          // the receive queues of the same QPs
  std::span<ResponseTarget> clients;
  const QpIndex* qps = nullptr;  // of the clients
  Ring<SpecRequest> waiting;     // has room for all RECVs: a RECV is posted again before its request is answered
  std::uint64_t* counter = nullptr;
  std::uint64_t head = 0, tail = 0;  // positions in `waiting`
  std::uint64_t corrections = 0;
  PassCounts counts;

  void begin_interval() { counts = {}; }
};

// A RECV of queue `index` is free: it is posted again with the others of its list. False: a post failed.
inline bool give_back_recv(SpecWorker& s, std::uint32_t index, RunEnd& end) {
  RecvLane& recvs = s.recvs[index];
  if (++recvs.consumed != recvs.list) return true;
  recvs.consumed = 0;
  return post_succeeded(post_next_recvs(recvs), s.queues[index].index, end);
}

// Takes completions, and puts requests into `waiting`. Returns how many, or -1 with `end` set.
inline int take_requests(SpecWorker& s, RunEnd& end) {
  return reap<kRateBatch>(s.cq, s.queues, end, [&](const ibv_wc& wc) {
    const std::uint32_t index = recv_queue(wc.wr_id);
    const std::uint32_t client = s.qps->find(wc);
    if (client == QpIndex::kNotFound) [[unlikely]] {
      ++s.unknown;
      return give_back_recv(s, index, end);
    }
    s.waiting[s.tail++] = {client, be32toh(wc.imm_data), index};
    return true;
  });
}

inline void make_answer(SpecWorker& s, const SpecRequest& request, std::uint64_t value) {
  ResponseTarget& client = s.clients[request.client];
  ibv_send_wr& wr = append_next(s.queues[request.queue]);
  wr.wr.ud = client.to;
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
  ++client.answered;
}

// Answers waiting requests, as far as the send queues have room, with one atomic add for all; posts one by one unless
// batching.
template <Node N>
inline bool answer_waiting(N& node, SpecWorker& s, RunEnd& end) {
  std::ranges::fill(s.reserved, 0u);
  std::uint64_t until = s.head;
  for (; until != s.tail; ++until) {
    const std::uint32_t index = s.waiting[until].queue;
    if (s.reserved[index] == s.queues[index].room) break;
    ++s.reserved[index];
    if (!give_back_recv(s, index, end)) return false;
  }
  if (until == s.head) return true;
  std::uint64_t value = node.fetch_add(*s.counter, until - s.head);
  BatchCounts* const batches = s.measured ? &s.counts.batches : nullptr;
  s.served += until - s.head;
  while (s.head != until) {
    const SpecRequest& request = s.waiting[s.head++];
    make_answer(s, request, value++);
    if (!s.batching && !post_appended(s.queues[request.queue], s.max_batch, batches, end)) return false;
  }
  for (SendQueue& queue : s.queues) {
    if (!post_appended(queue, s.max_batch, batches, end)) return false;
  }
  return true;
}

// One pass of server_loop().
template <Node N>
inline int serve(N& node, SpecWorker& s, RunEnd& end) {
  const std::uint64_t before = s.served;
  const int completed = take_requests(s, end);
  if (completed < 0 || !answer_waiting(node, s, end)) return -1;
  if (s.measured) count_pass(s.counts, s.served - before, kRateBatch, s.tail - s.head);
  return s.served > before || completed > 0 ? 1 : 0;
}

}  // namespace verbscope
