// The data path of a thread whose operations are one window over all its QPs: a ring of requests, each of which has to
// be back before its place is used again. Prebuilt requests, no allocation, no virtual call.
#pragma once

#include <infiniband/verbs.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "microbench/bench/control.hpp"
#include "microbench/bench/region.hpp"
#include "microbench/loop/choice.hpp"
#include "microbench/loop/completions.hpp"
#include "microbench/loop/idle_wait.hpp"
#include "microbench/loop/payload.hpp"
#include "microbench/loop/send_queue.hpp"

namespace verbscope {

// Where the request of a place of the ring is under way.
struct WindowSlot {
  std::uint32_t queue = 0;
  std::uint64_t number = 0;  // among the requests of that queue, from 1 on
};

struct WindowState {
  std::span<SendQueue> queues;
  std::span<ibv_send_wr> requests;  // the ring, in lists of post_list
  std::span<WindowSlot> slots;      // as many
  bool bounded = true;              // the ring is the window; otherwise only signal_every bounds what is outstanding
  bool whole = false;               // all of the window must be back before the next is begun; otherwise the oldest
  std::uint32_t post_list = 1;
  std::uint32_t signal_every = 1;
  Choice turn{1, false, 0, 0};
  std::uint64_t goal = MeasuredInterval::kNoGoal;  // operations to measure
  ibv_comp_channel* channel = nullptr;             // sleep there when nothing completes
  // READs write here: request n of the ring at n * `stride`. With `by_memory` a READ is complete when the last of its
  // `payload` bytes is not 0; the thread then clears that byte. If all READs are signaled, it also needs a completion.
  std::span<std::byte> landing;
  std::uint64_t stride = 0;
  std::uint32_t payload = 0;
  bool by_memory = false;
  // Completions that threads with the same QPs poll for each other, and this thread's number among them. Null: the QPs
  // are not shared.
  SharedCompletions* shared = nullptr;
  std::uint32_t member = 0;
  PayloadChecker* checker = nullptr;  // of the bytes that READs bring; null: they are not checked
  std::uint64_t checked = 0, wrong = 0;
  std::uint64_t head = 0, tail = 0;  // operations that are back, and that are posted: head <= tail
};

// The requests of a queue that must be complete before a list of `list` more may be posted: its depth allows no more,
// and a signaled request is waited for before the last of the `every` that follow it, as in rdma_bench
// (rc-swarm/worker.c).
constexpr std::uint64_t complete_before(std::uint64_t posted, std::uint32_t list, std::uint32_t every,
                                        std::uint32_t depth) {
  const std::uint64_t for_depth = posted + list > depth ? posted + list - depth : 0;
  if (every == 1) return for_depth;
  const std::uint64_t batches = (posted + list + 1) / every;
  const std::uint64_t for_batch = std::min(batches > 0 ? batches - 1 : 0, posted / every) * every;
  return std::max(for_depth, for_batch);
}

template <Node N>
class WindowLoop {
 public:
  WindowLoop(N& node, WindowState& state, const RunControl& control, ThreadTally& tally)
      : node_(node),
        s_(state),
        control_(control),
        tally_(tally),
        interval_(tally, state.goal),
        wait_(state.queues.front().qp->send_cq, state.channel, tally),
        oldest_(state.head % state.slots.size()),
        next_(state.tail % state.slots.size()) {}

  // Posts until the phase is `stop` or the goal is reached, then waits for what is signaled. How it ended is in
  // tally.end.
  void run() {
    if (s_.by_memory) node_.watch(s_.landing.data(), s_.landing.size());
    while (!interval_.over()) {
      if (!make_room()) return;
      if (interval_.over()) break;
      if (!post_next(s_.post_list)) return;
    }
    drain();
  }

 private:
  // Counts operations that are done.
  void count(std::uint64_t operations) {
    ops_ += operations;
    tally_.done_ops.store(ops_, std::memory_order_relaxed);
    interval_.see(node_, control_.phase.load(std::memory_order_relaxed), ops_);
  }

  // `completions` of queue `q` have come, each of signal_every requests.
  void complete(SendQueue& q, std::uint32_t completions) {
    for (std::uint32_t i = 0; i < completions; ++i) retire_signaled(q);
    if (!s_.bounded) count(std::uint64_t{completions} * s_.signal_every);
  }

  // Takes the completions that are there: those that other threads took for this one, or else from the queue. Returns
  // how many there were, or -1 with the tally's end set.
  int take(ibv_cq* cq) {
    if (s_.shared != nullptr) {
      if (const int taken = collect(); taken > 0) return taken;
    }
    const std::uint64_t left =
        s_.bounded ? kRateBatch : std::max<std::uint64_t>(interval_.left(ops_) / s_.signal_every, 1);
    return take_completions<kRateBatch>(cq, left, tally_.end, [this](const ibv_wc& wc) {
      if (const std::uint32_t member = sent_request(wc.wr_id); member != s_.member) {
        s_.shared->credit(member, sent_queue(wc.wr_id), 1);
      } else {
        complete(s_.queues[sent_queue(wc.wr_id)], 1);
      }
    });
  }

  int collect() {
    int taken = 0;
    for (std::size_t i = 0; i < s_.queues.size(); ++i) {
      const auto completions = static_cast<std::uint32_t>(s_.shared->collect(s_.member, i));
      if (completions > 0) complete(s_.queues[i], completions);
      taken += static_cast<int>(completions);
    }
    return taken;
  }

  template <class Done>
  bool take_until(ibv_cq* cq, Done&& done) {
    while (!done()) {
      const int taken = take(cq);
      if (taken < 0) return false;
      if (taken == 0 && !wait_.idle_unless_quit(node_, control_)) return false;
    }
    return true;
  }

  bool await_complete(SendQueue& q, std::uint64_t number) {
    return take_until(q.qp->send_cq, [&q, number] { return q.completed() >= number; });
  }

  // The place of the ring `step` after `slot`; lists divide the ring.
  void advance(std::uint64_t& slot, std::uint64_t step) const {
    slot += step;
    if (slot == s_.slots.size()) slot = 0;
  }

  std::byte* place(std::uint64_t slot) const { return s_.landing.data() + slot * s_.stride; }

  bool await_memory(std::uint64_t slot) {
    constexpr std::uint32_t kLooksPerTake = 1024;  // a request that fails says so in its completion alone
    std::byte* const last = place(slot) + s_.payload - 1;
    for (std::uint32_t looks = 1;; ++looks) {
      node_.poll_memory();
      if (load_word<std::uint8_t>(last) != 0) break;
      const bool quit = must_give_up(control_, tally_.end);
      if (quit || looks % kLooksPerTake == 0) [[unlikely]] {
        if (take(s_.queues[s_.slots[slot].queue].qp->send_cq) < 0 || quit) return false;
      }
      node_.idle();
    }
    store_word<std::uint8_t>(last, 0);
    return true;
  }

  // Until the oldest operation is back.
  bool retire_oldest() {
    const std::uint64_t slot = oldest_;
    if (s_.by_memory && !await_memory(slot)) return false;
    if (!s_.by_memory || s_.signal_every == 1) {
      if (!await_complete(s_.queues[s_.slots[slot].queue], s_.slots[slot].number)) return false;
    }
    if (s_.checker != nullptr) {
      ++s_.checked;
      if (!s_.checker->bytes_good(place(slot))) ++s_.wrong;
    }
    ++s_.head;
    advance(oldest_, 1);
    count(1);
    return true;
  }

  bool make_room() {
    if (!s_.bounded || s_.tail - s_.head + s_.post_list <= s_.slots.size()) return true;
    const std::uint64_t until = s_.whole ? s_.tail : s_.tail + s_.post_list - s_.slots.size();
    while (s_.head < until && !interval_.over()) {
      if (!retire_oldest()) return false;
    }
    return true;
  }

  bool post_next(std::uint32_t list) {
    const auto index = static_cast<std::uint32_t>(s_.turn.next());
    SendQueue& q = s_.queues[index];
    if (!await_complete(q, complete_before(q.posted(), list, s_.signal_every, q.depth))) return false;
    if (interval_.over()) return true;
    const std::uint64_t first = next_;
    for (std::uint64_t slot = first; slot < first + list; ++slot) {
      prepare(q, s_.requests[slot]);
      s_.slots[slot] = {index, q.posted()};
    }
    q.walk->point(&s_.requests[first], list);
    s_.tail += list;
    advance(next_, list);
    return post_placed(q, &s_.requests[first], tally_.end);
  }

  void prepare(SendQueue& q, ibv_send_wr& wr) const {
    wr.wr_id = send_id(q.index, s_.member);
    wr.wr.rdma.rkey = q.walk->rkey();
    take_place(q, wr);
  }

  // Each queue's last request becomes a signaled one, and all of these are waited for.
  void drain() {
    for (SendQueue& q : s_.queues) {
      if (q.to_signaled == q.signal_every) continue;
      if (!await_complete(q, complete_before(q.posted(), 1, 1, q.depth))) return;
      ibv_send_wr& wr = s_.requests[s_.post_list - 1];  // it ends a list
      q.to_signaled = 1;
      prepare(q, wr);
      q.walk->point(&wr, 1);
      if (!post_placed(q, &wr, tally_.end)) return;
    }
    for (SendQueue& q : s_.queues) {
      if (!take_until(q.qp->send_cq, [&q] { return q.due == 0; })) return;
    }
  }

  N& node_;
  WindowState& s_;
  const RunControl& control_;
  ThreadTally& tally_;
  MeasuredInterval interval_;
  IdleWait wait_;
  std::uint64_t oldest_;  // the place of the ring that head, or tail, has come to
  std::uint64_t next_;
  std::uint64_t ops_ = 0;
};

}  // namespace verbscope
