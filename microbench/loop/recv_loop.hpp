// The data path of a thread that receives: reap completions, check them, repost RECVs a list at a time.
#pragma once

#include <infiniband/verbs.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <utility>

#include "microbench/bench/control.hpp"
#include "microbench/loop/idle_wait.hpp"
#include "microbench/loop/payload.hpp"

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
  std::uint64_t stride = 0;  // from one payload to the next
  std::uint64_t received = 0;
  ibv_recv_wr* chain = nullptr;  // shared: completed since the last post
};

struct RecvState {
  ibv_cq* cq = nullptr;
  std::span<RecvLane> queues;
  PayloadChecker* checker = nullptr;
  bool close_when_idle = false;                  // the stop may come after the last message: then the window ends there
  std::uint64_t wrong = 0;                       // messages that the checker refused
  std::uint64_t goal = MeasuredWindow::kNoGoal;  // messages to measure
  ibv_comp_channel* channel = nullptr;           // sleep there when nothing comes
};

// wr_id of a RECV: which queue, and which payload place of it.
constexpr std::uint64_t recv_id(std::uint32_t queue, std::uint32_t place) {
  return std::uint64_t{queue} << 32 | place;
}

inline constexpr int kRecvPollBatch = 32;

inline int post_next_recvs(RecvLane& q) {
  ibv_recv_wr* bad;
  const int error = ibv_post_recv(q.qp, q.ring + q.next, &bad);
  q.next += q.list;
  if (q.next == q.length) q.next = 0;
  return error;
}

inline int post_chain(RecvLane& q) {
  ibv_recv_wr* bad;
  return ibv_post_srq_recv(q.srq, std::exchange(q.chain, nullptr), &bad);
}

// Accounts for `count` completions. False: one is an error, or a post failed; `end` says which.
template <bool kValidate, bool kShared>
inline bool take_messages(RecvState& s, const ibv_wc* wcs, int count, RunEnd& end) {
  for (const ibv_wc* wc = wcs; wc != wcs + count; ++wc) {
    const auto index = static_cast<std::uint32_t>(wc->wr_id >> 32);
    const auto place = static_cast<std::uint32_t>(wc->wr_id);
    if (wc->status != IBV_WC_SUCCESS) [[unlikely]] {
      end = {EndKind::completion_failed, wc->status, wc->vendor_err, index};
      return false;
    }
    RecvLane& q = s.queues[index];
    if constexpr (kValidate) {
      if (!s.checker->good(*wc, q.payloads + place * q.stride)) ++s.wrong;
    }
    ++q.received;
    if constexpr (kShared) {
      q.ring[place].next = q.chain;
      q.chain = &q.ring[place];
    }
    if (++q.consumed == q.list) {
      q.consumed = 0;
      const int error = kShared ? post_chain(q) : post_next_recvs(q);
      if (error != 0) [[unlikely]] {
        end = {.kind = EndKind::post_failed, .code = error, .queue = index};
        return false;
      }
    }
  }
  return true;
}

// Receives until the conductor says that nothing more will come. How it ended is in tally.end.
template <bool kValidate, bool kShared, Node N>
void recv_loop(N& node, RecvState& s, const RunControl& control, ThreadTally& tally) {
  MeasuredWindow window(tally, s.goal);
  IdleWait wait(s.cq, s.channel, tally);
  std::array<ibv_wc, kRecvPollBatch> wcs;
  std::uint64_t received = 0;
  for (;;) {
    const auto batch = static_cast<int>(std::min<std::uint64_t>(window.left(received), kRecvPollBatch));
    const int count = ibv_poll_cq(s.cq, batch, wcs.data());
    if (count <= 0) [[unlikely]] {
      if (count < 0) {
        tally.end = {.kind = EndKind::poll_failed, .code = -count};
        return;
      }
      if (control.quit.load(std::memory_order_relaxed)) return;
      if (s.close_when_idle && control.phase.load(std::memory_order_relaxed) == Phase::stop) {
        window.see(node, Phase::stop, received);
      }
      wait.idle(node);
      continue;
    }
    if (!take_messages<kValidate, kShared>(s, wcs.data(), count, tally.end)) [[unlikely]]
      return;
    received += static_cast<std::uint64_t>(count);
    tally.done_ops.store(received, std::memory_order_relaxed);
    window.see(node, control.phase.load(std::memory_order_relaxed), received);
    if (window.closed() && control.quit.load(std::memory_order_relaxed)) return;
  }
}

}  // namespace verbscope
