// A send queue that takes single requests, signals every so many, and knows what is still to complete; and the reaping
// of a completion queue that several of them and their RECVs share. Data path of all benchmarks but the rates of SEND,
// RECV, WRITE and READ.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "microbench/bench/control.hpp"
#include "microbench/loop/completions.hpp"
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

// A queue with nothing posted.
inline LaneQueue empty_queue(ibv_qp* qp, ibv_qp_ex* builder, std::uint32_t depth, std::uint32_t signal_every) {
  return {.qp = qp, .builder = builder, .depth = depth, .room = depth, .signal_every = signal_every};
}

// Gives `wr` the next place of the queue, which must have room, and says whether it is signaled.
inline void take_place(LaneQueue& q, ibv_send_wr& wr) {
  if (++q.unsignaled == q.signal_every) {
    wr.send_flags |= IBV_SEND_SIGNALED;
    q.unsignaled = 0;
    ++q.due;
  } else {
    wr.send_flags &= ~static_cast<unsigned>(IBV_SEND_SIGNALED);
  }
  --q.room;
  ++q.posted;
}

// Posts `wr` (its wr_id is send_id of the queue), which must have room. False, with `end` set: the post failed.
inline bool post_one(LaneQueue& q, ibv_send_wr& wr, std::uint32_t index, RunEnd& end) {
  take_place(q, wr);
  return post_list(q.qp, q.builder, &wr, index, end);
}

// A signaled request has completed, and with it those that were posted before it.
inline void retire_signaled(LaneQueue& q) {
  q.room += q.signal_every;
  --q.due;
}

// Takes the completions that are there: retires requests, hands RECVs to `on_recv(wc)`, which may return false to give
// up. Returns how many there were, or -1 with `end` set.
template <class OnRecv>
inline int reap(ibv_cq* cq, std::span<LaneQueue> queues, RunEnd& end, OnRecv&& on_recv) {
  return take_completions<kCompletionBatch>(cq, kCompletionBatch, end, [&](const ibv_wc& wc) {
    if (!is_send_id(wc.wr_id)) return on_recv(wc);
    retire_signaled(queues[sent_queue(wc.wr_id)]);
    return true;
  });
}

// Reaps until `done()`. False: a failure, or the order to quit came first; the thread's tally, whose `end` this is,
// says which.
template <Node N, class OnRecv, class Done>
inline bool reap_until(N& node, ibv_cq* cq, std::span<LaneQueue> queues, IdleWait& wait, const RunControl& control,
                       RunEnd& end, OnRecv&& on_recv, Done&& done) {
  while (!done()) {
    const int count = reap(cq, queues, end, on_recv);
    if (count < 0) return false;
    if (count == 0 && !wait.idle_unless_quit(node, control)) return false;
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
    const bool quit = must_give_up(control, end);
    if (quit || looks % kLooksPerReap == 0) [[unlikely]] {
      if (reap(cq, queues, end, kNoRecv) < 0 || quit) return false;  // a failure says more than the order to quit
    }
    node.relax();
  }
}

}  // namespace verbscope
