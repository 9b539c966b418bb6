// A send queue that takes single requests, signals every so many, and knows what is still to complete; and the reaping
// of a completion queue that several of them and their RECVs share. Data path of the latency and exchange benchmarks.
#pragma once

#include <infiniband/verbs.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "microbench/bench/control.hpp"
#include "microbench/loop/idle_wait.hpp"
#include "microbench/loop/post.hpp"

namespace verbscope {

// Invariant: depth - room requests are posted and not known to be complete; `due` of them are signaled.
struct LaneQueue {
  ibv_qp* qp = nullptr;
  ibv_qp_ex* builder = nullptr;  // posts with it, when there is one
  std::uint32_t depth = 1;
  std::uint32_t room = 1;
  std::uint32_t signal_every = 1;
  std::uint32_t unsignaled = 0;  // posted since the last signaled one
  std::uint32_t due = 0;         // completions to come
  std::uint64_t posted = 0;
};

// wr_id of a request sent on queue `index`; those of RECVs lack the bit.
inline constexpr std::uint64_t kSendId = std::uint64_t{1} << 63;
constexpr std::uint64_t send_id(std::uint32_t index) {
  return kSendId | index;
}

// Posts `wr` (its wr_id is send_id of the queue), which must have room. Returns 0 or an errno value.
inline int post_one(LaneQueue& q, ibv_send_wr& wr) {
  if (++q.unsignaled == q.signal_every) {
    wr.send_flags |= IBV_SEND_SIGNALED;
    q.unsignaled = 0;
    ++q.due;
  } else {
    wr.send_flags &= ~static_cast<unsigned>(IBV_SEND_SIGNALED);
  }
  --q.room;
  ++q.posted;
  return q.builder != nullptr ? post_list(q.builder, &wr) : post_list(q.qp, &wr);
}

// The same with an account of the failure in `end`.
inline bool post_one(LaneQueue& q, ibv_send_wr& wr, std::uint32_t index, RunEnd& end) {
  const int error = post_one(q, wr);
  if (error != 0) [[unlikely]]
    end = {.kind = EndKind::post_failed, .code = error, .queue = index};
  return error == 0;
}

inline constexpr int kCompletionBatch = 16;

// Takes the completions that are there, `batch` at most, without waiting, and hands them to `on_completion(wc)`, which
// returns false to give up, after having set `end`. Returns how many there were, or -1 with `end` set; a failed one is
// that of the thread's queue `queue_of(wc)`.
template <class QueueOf, class OnCompletion>
inline int take_completions(ibv_cq* cq, int batch, RunEnd& end, QueueOf&& queue_of, OnCompletion&& on_completion) {
  std::array<ibv_wc, kCompletionBatch> wcs;
  const int count = ibv_poll_cq(cq, std::min(batch, kCompletionBatch), wcs.data());
  if (count < 0) [[unlikely]] {
    end = {.kind = EndKind::poll_failed, .code = -count};
    return -1;
  }
  for (int i = 0; i < count; ++i) {
    const ibv_wc& wc = wcs[static_cast<std::size_t>(i)];
    if (wc.status != IBV_WC_SUCCESS) [[unlikely]] {
      end = {EndKind::completion_failed, wc.status, wc.vendor_err, queue_of(wc)};
      return -1;
    }
    if (!on_completion(wc)) return -1;
  }
  return count;
}

// Takes completions like take_completions: retires requests, hands RECVs to `on_recv(wc)`.
template <class OnRecv>
inline int reap(ibv_cq* cq, std::span<LaneQueue> queues, RunEnd& end, OnRecv&& on_recv) {
  const auto sent = [](const ibv_wc& wc) { return (wc.wr_id & kSendId) != 0; };
  return take_completions(
      cq, kCompletionBatch, end,
      [&](const ibv_wc& wc) { return static_cast<std::uint32_t>(sent(wc) ? wc.wr_id : wc.wr_id >> 32); },
      [&](const ibv_wc& wc) {
        if (!sent(wc)) return on_recv(wc);
        LaneQueue& q = queues[static_cast<std::uint32_t>(wc.wr_id)];
        q.room += q.signal_every;
        --q.due;
        return true;
      });
}

// After a poll that found nothing: waits for a moment. False, with `end` set: nothing more will come.
template <Node N>
inline bool idle_unless_quit(N& node, IdleWait& wait, const RunControl& control, RunEnd& end) {
  if (control.quit.load(std::memory_order_relaxed)) [[unlikely]] {
    end = {.kind = EndKind::gave_up};
    return false;
  }
  wait.idle(node);
  return true;
}

// Reaps until `done()`. False: a failure, or the order to quit came first; `end` says which.
template <Node N, class OnRecv, class Done>
inline bool reap_until(N& node, ibv_cq* cq, std::span<LaneQueue> queues, IdleWait& wait, const RunControl& control,
                       RunEnd& end, OnRecv&& on_recv, Done&& done) {
  while (!done()) {
    const int count = reap(cq, queues, end, on_recv);
    if (count < 0) return false;
    if (count == 0 && !idle_unless_quit(node, wait, control, end)) return false;
  }
  return true;
}

// Passive sides expect nothing on their receive queue.
inline constexpr auto kNoRecv = [](const ibv_wc&) { return true; };

// A word that a peer writes. The bytes before it are at least as new as what it says, where the device writes from left
// to right.
template <class Word>
inline Word load_word(std::byte* address) {
  return std::atomic_ref<Word>(*reinterpret_cast<Word*>(address)).load(std::memory_order_acquire);
}
template <class Word>
inline void store_word(std::byte* address, Word value) {
  std::atomic_ref<Word>(*reinterpret_cast<Word*>(address)).store(value, std::memory_order_release);
}

// Looks at memory until `arrived()`. Between looks it reaps now and then, so that a failed request ends the wait.
template <Node N, class Arrived>
inline bool look_until(N& node, ibv_cq* cq, std::span<LaneQueue> queues, const RunControl& control, RunEnd& end,
                       Arrived&& arrived) {
  constexpr std::uint32_t kLooksPerReap = 1024;
  for (std::uint32_t looks = 1;; ++looks) {
    node.look();
    if (arrived()) return true;
    const bool quit = control.quit.load(std::memory_order_relaxed);
    if (quit || looks % kLooksPerReap == 0) [[unlikely]] {
      if (reap(cq, queues, end, kNoRecv) < 0) return false;
      if (quit) {
        end = {.kind = EndKind::gave_up};
        return false;
      }
    }
    node.relax();
  }
}

}  // namespace verbscope
