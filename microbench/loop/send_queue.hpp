// One send queue of a thread: its room, which of its requests are signaled, the list that is being built; and the
// reaping of a completion queue that several of them and their RECVs share. Data path.
#pragma once

#include <infiniband/verbs.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "microbench/bench/control.hpp"
#include "microbench/bench/region.hpp"
#include "microbench/loop/batch_counts.hpp"
#include "microbench/loop/completions.hpp"
#include "microbench/loop/idle_wait.hpp"
#include "microbench/loop/post.hpp"

namespace verbscope {

// Requests that wait for one doorbell, chained.
struct PostList {
  ibv_send_wr* first = nullptr;
  ibv_send_wr* last = nullptr;
  std::uint32_t count = 0;
};

// Signalling has two policies. take_place() and take_next() mark each signal_every-th request as signaled when they
// give it its place. A ring may also be built with its marks (send_ring.hpp): its owner keeps `room` and `next` itself.
// Invariant: depth - room requests are posted and not known to be complete.
struct SendQueue {
  ibv_qp* qp = nullptr;
  ibv_qp_ex* builder = nullptr;  // posts with it if not null
  std::uint32_t index = 0;       // among the thread's queues; a failed post reports it
  std::uint32_t depth = 1;       // requests that may be outstanding
  std::uint32_t room = depth;    // requests that may be posted before the next completion
  std::uint32_t signal_every = 1;
  std::uint32_t to_signaled = signal_every;  // requests to mark until one is signaled, including that one
  std::uint32_t due = 0;                     // marked as signaled, and outstanding
  // Prebuilt requests, used in turn; none where the caller brings its own. Marks repeat with each lap: the length is a
  // multiple of signal_every.
  std::span<ibv_send_wr> ring{};
  const ibv_send_wr* ring_end = ring.data() + ring.size();
  ibv_send_wr* next = ring.data();      // request of the ring to use next
  RemoteWalk* walk = nullptr;           // over the places of WRITEs and READs
  PostList list{.first = ring.data()};  // built by append() or append_next(), posted by post_appended()
  std::uint64_t before = 0;             // requests before this lap of the ring; without a ring, all
  SendQueue* following =
      nullptr;  // has the turn after this one, where queues take turns (systems/requests/responses.hpp)

  std::uint64_t posted() const { return before + static_cast<std::uint64_t>(next - ring.data()); }
  std::uint64_t completed() const { return posted() - (depth - room); }

  // Goes back to the beginning of the ring when its end is reached. Whether it was.
  bool wrap() {
    if (next != ring_end) [[likely]]
      return false;
    next = ring.data();
    before += ring.size();
    return true;
  }
};

// Gives `wr`, which is not of the ring, the next place of the queue, which must have room, and marks it.
inline void take_place(SendQueue& q, ibv_send_wr& wr) {
  if (--q.to_signaled == 0) {
    wr.send_flags |= IBV_SEND_SIGNALED;
    q.to_signaled = q.signal_every;
    ++q.due;
  } else {
    wr.send_flags &= ~static_cast<unsigned>(IBV_SEND_SIGNALED);
  }
  --q.room;
  ++q.before;
}

// Gives the next request of the ring the next place of the queue, which must have room, and marks it.
inline ibv_send_wr& take_next(SendQueue& q) {
  ibv_send_wr& wr = *q.next++;
  --q.room;
  if (--q.to_signaled == 0) [[unlikely]] {
    wr.send_flags |= IBV_SEND_SIGNALED;
    q.to_signaled = q.signal_every;
    ++q.due;
    q.wrap();
  }
  return wr;
}

// Posts the chain that begins with `first`, whose places were taken. False, with `end` set: the post failed.
inline bool post_placed(const SendQueue& q, ibv_send_wr* first, RunEnd& end) {
  return post_list(q.qp, q.builder, first, q.index, end);
}

// Posts `wr` (its wr_id is send_id of the queue), which must have room. False, with `end` set: the post failed.
inline bool post_one(SendQueue& q, ibv_send_wr& wr, RunEnd& end) {
  take_place(q, wr);
  return post_placed(q, &wr, end);
}

// Posts the next request of the ring by itself. False, with `end` set: the post failed.
inline bool post_next(SendQueue& q, RunEnd& end) {
  return post_placed(q, &take_next(q), end);
}

// Makes `wr` (its wr_id is send_id of the queue), for which there must be room, the last of the queue's list.
inline void append(SendQueue& q, ibv_send_wr& wr) {
  take_place(q, wr);
  (q.list.count == 0 ? q.list.first : q.list.last->next) = &wr;
  q.list.last = &wr;
  ++q.list.count;
}

// The same for the next request of the ring, which it returns. A list of such requests begins where the last one ended.
inline ibv_send_wr& append_next(SendQueue& q) {
  ibv_send_wr& wr = take_next(q);
  wr.next = q.next;
  q.list.last = &wr;
  ++q.list.count;
  return wr;
}

// Posts the queue's list, if there is one, with a doorbell for each `most` of its requests. `batches`: counts the
// lists; may be null. False, with `end` set: a post failed.
inline bool post_appended(SendQueue& q, std::uint32_t most, BatchCounts* batches, RunEnd& end) {
  PostList& list = q.list;
  while (list.count > 0) {
    ibv_send_wr* const first = list.first;
    ibv_send_wr* last = list.last;
    const std::uint32_t length = std::min(list.count, most);
    if (length < list.count) {
      last = first;
      for (std::uint32_t j = 1; j < length; ++j) last = last->next;
    }
    list.first = last->next;
    list.count -= length;
    last->next = nullptr;
    if (batches != nullptr) batches->count(length);
    if (!post_placed(q, first, end)) return false;
  }
  return true;
}

// A signaled request has completed, and with it those that were posted before it.
inline void retire_signaled(SendQueue& q) {
  q.room += q.signal_every;
  --q.due;
}

// Takes the completions that are there, up to `most`: retires requests, hands RECVs to `on_recv(wc)`, which may return
// false to give up. Returns how many there were, or -1 with `end` set.
template <int kBatch = kCompletionBatch, class OnRecv>
inline int reap(ibv_cq* cq, std::span<SendQueue> queues, RunEnd& end, OnRecv&& on_recv, std::uint64_t most = kBatch) {
  return take_completions<kBatch>(cq, most, end, [&](const ibv_wc& wc) {
    if (!is_send_id(wc.wr_id)) return on_recv(wc);
    retire_signaled(queues[sent_queue(wc.wr_id)]);
    return true;
  });
}

// Reaps until `done()`. False: a failure, or the order to quit came first; the thread's tally, whose `end` this is,
// says which.
template <Node N, class OnRecv, class Done>
inline bool reap_until(N& node, ibv_cq* cq, std::span<SendQueue> queues, IdleWait& wait, const RunControl& control,
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
inline bool look_until(N& node, ibv_cq* cq, std::span<SendQueue> queues, const RunControl& control, RunEnd& end,
                       Arrived&& arrived) {
  constexpr std::uint32_t kLooksPerReap = 1024;
  for (std::uint32_t looks = 1;; ++looks) {
    node.poll_memory();
    if (arrived()) return true;
    const bool quit = must_give_up(control, end);
    if (quit || looks % kLooksPerReap == 0) [[unlikely]] {
      if (reap(cq, queues, end, kNoRecv) < 0 || quit) return false;  // a failure says more than the order to quit
    }
    node.idle();
  }
}

}  // namespace verbscope
