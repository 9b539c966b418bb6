// The data path of a thread that receives: reap completions, check them, repost RECVs a list at a time.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <span>
#include <utility>

#include "microbench/bench/control.hpp"
#include "microbench/loop/completions.hpp"
#include "microbench/loop/idle_wait.hpp"
#include "microbench/loop/payload.hpp"
#include "microbench/loop/post.hpp"

namespace verbscope {

// One QP as the loop sees it. RECVs complete in the order in which they were posted, so when a list's worth has
// completed, the list at `next` is free again. Or the one shared receive queue of a thread: its RECVs complete in any
// order, so those that have completed are chained and posted together.
struct RecvLane {
  ibv_qp* qp = nullptr;
  ibv_srq* srq = nullptr;       // then `ring` has one request a place
  ibv_recv_wr* ring = nullptr;  // lists of `list` requests, chained
  std::uint32_t next = 0;       // ring position of the list to post next
  std::uint32_t length = 0;
  std::uint32_t list = 1;
  std::uint32_t consumed = 0;  // completed since the last post
  std::byte* payloads = nullptr;
  std::uint64_t stride = 0;  // bytes from a payload to the next
  std::uint64_t received = 0;
  ibv_recv_wr* chain = nullptr;  // shared: completed since the last post
};

struct RecvState {
  ibv_cq* cq = nullptr;
  std::span<RecvLane> queues;
  PayloadChecker* checker = nullptr;
  bool close_when_idle = false;  // the stop may come after the last message: then the interval ends there
  std::uint64_t wrong = 0;       // messages that the checker refused
  std::uint64_t goal = MeasuredInterval::kNoGoal;  // messages to measure
  ibv_comp_channel* channel = nullptr;             // sleep there when nothing comes
};

// Posts the next list of `q`. Returns 0 or an errno value.
inline int post_next_recvs(RecvLane& q) {
  const int error = post_recv_list(q.qp, q.ring + q.next);
  q.next += q.list;
  if (q.next == q.length) q.next = 0;
  return error;
}
// The same for queue `index` of the thread. False, with `end` set: the post failed.
inline bool post_next_recvs(RecvLane& q, std::uint32_t index, RunEnd& end) {
  return post_succeeded(post_next_recvs(q), index, end);
}

// Posts what has completed of a shared receive queue since the last post. Returns 0 or an errno value.
inline int post_chain(RecvLane& q) {
  ibv_recv_wr* bad;
  return ibv_post_srq_recv(q.srq, std::exchange(q.chain, nullptr), &bad);
}

// Counts one message, and posts RECVs when a list of them is free. False, with `end` set: the post failed.
template <bool kValidate, bool kShared>
inline bool take_message(RecvState& s, const ibv_wc& wc, RunEnd& end) {
  const std::uint32_t index = recv_queue(wc.wr_id);
  const std::uint32_t place = recv_place(wc.wr_id);
  RecvLane& q = s.queues[index];
  if constexpr (kValidate) {
    if (!s.checker->good(wc, q.payloads + place * q.stride)) ++s.wrong;
  }
  ++q.received;
  if constexpr (kShared) {
    q.ring[place].next = q.chain;
    q.chain = &q.ring[place];
  }
  if (++q.consumed != q.list) return true;
  q.consumed = 0;
  return post_succeeded(kShared ? post_chain(q) : post_next_recvs(q), index, end);
}

// Receives until the controller says that nothing more will come. How it ended is in tally.end.
template <bool kValidate, bool kShared, Node N>
void recv_loop(N& node, RecvState& s, const RunControl& control, ThreadTally& tally) {
  MeasuredInterval interval(tally, s.goal);
  IdleWait wait(s.cq, s.channel, tally);
  std::uint64_t received = 0;
  for (;;) {
    const int count = take_completions<kRateBatch>(s.cq, interval.left(received), tally.end, [&](const ibv_wc& wc) {
      return take_message<kValidate, kShared>(s, wc, tally.end);
    });
    if (count <= 0) [[unlikely]] {
      if (count < 0 || control.quit.load(std::memory_order_relaxed)) return;
      if (s.close_when_idle && control.phase.load(std::memory_order_relaxed) == Phase::stop) {
        interval.see(node, Phase::stop, received);
      }
      wait.idle(node);
      continue;
    }
    received += static_cast<std::uint64_t>(count);
    tally.done_ops.store(received, std::memory_order_relaxed);
    interval.see(node, control.phase.load(std::memory_order_relaxed), received);
    if (interval.closed() && control.quit.load(std::memory_order_relaxed)) return;
  }
}

}  // namespace verbscope
