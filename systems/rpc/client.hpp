// The client of a request system: its requests by thread of the server, the RECVs for their responses, and its loop.
// Data path.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "microbench/bench/benchmark.hpp"
#include "microbench/bench/workload.hpp"
#include "microbench/loop/recv_ring.hpp"
#include "microbench/loop/send_queue.hpp"
#include "systems/rpc/tags.hpp"

namespace verbscope {

// A request that waits for its response. Systems add what they need to know of it.
struct RequestSlot {
  Picos last{0};             // when it was sent last
  std::uint64_t number = 0;  // among those to its thread of the server
  bool open = false;
};

// The requests of a client to one thread of the server: number n is in slot n % slots.
template <class Slot>
struct RequestLane {
  std::span<Slot> slots;
  std::uint64_t sent = 0;

  // The slot of the next request; free unless open.
  Slot& next() { return slots[sent % slots.size()]; }
  // Opens it for a request that is sent now.
  Slot& begin(Picos now) {
    Slot& slot = next();
    slot.last = now;
    slot.number = sent++;
    slot.open = true;
    return slot;
  }
  // The open request with this tag (tags.hpp); null: it has had its response.
  Slot* tagged_with(std::uint32_t tag) {
    const std::uint64_t number = tagged_number(tag, sent);
    Slot& slot = slots[number % slots.size()];
    return slot.open && slot.number == number ? &slot : nullptr;
  }
  // The oldest open request; null: there is none.
  Slot* oldest() {
    Slot* oldest = nullptr;
    for (Slot& slot : slots) {
      if (slot.open && (oldest == nullptr || slot.number < oldest->number)) oldest = &slot;
    }
    return oldest;
  }
};

// The RECVs of a client: one for each response that it waits for, posted before it asks.
struct ResponseRecvs {
  RecvLane ring;
  std::uint32_t queue = 0;  // of the thread; a failed post reports it
  std::uint32_t posted = 0;

  // Posts until `responses` are expected, or there are no more RECVs. False: a post failed.
  bool cover(std::uint32_t responses, RunEnd& end) {
    for (; posted < responses && posted < ring.length; ++posted) {
      if (!post_succeeded(post_next_recvs(ring), queue, end)) return false;
    }
    return true;
  }

  // What lies in the RECV that `wc` completes, until RECVs are posted again.
  const std::byte* take_body(const ibv_wc& wc) {
    --posted;
    return ring.payloads + recv_place(wc.wr_id) * ring.stride;
  }
  // The value of 8 bytes in it.
  std::uint64_t take(const ibv_wc& wc) {
    std::uint64_t value;
    std::memcpy(&value, take_body(wc), sizeof value);
    return value;
  }
};

// What client_loop() needs of every client; systems add `done()`, the requests that are done, and `begin_window()`,
// which forgets what was measured before.
struct RequestClientState {
  ibv_cq* cq = nullptr;
  std::span<SendQueue> queues;
  Picos retry_after{0};  // a request without a response is sent again after it; 0: never
  std::uint64_t goal = MeasuredInterval::kNoGoal;
};

// The requests that a client keeps outstanding. Systems add `state`, and what client_loop() calls: `ask(now, end)`,
// which asks until enough is outstanding, `take(wc, now, measured, end)` and `ask_again(now, end)`; all are false after
// a failure.
class RequestAsker {
 public:
  ResponseRecvs recvs;
  std::uint32_t outstanding = 1;  // requests at most

  std::uint32_t open() const { return open_; }

 protected:
  bool may_ask(const SendQueue& queue) const { return open_ < outstanding && queue.room > 0; }
  // One more request is outstanding. False: a RECV could not be posted.
  bool open_one(RunEnd& end) { return recvs.cover(++open_, end); }
  void close_one() { --open_; }
  // Posts the RECVs that the outstanding requests need, and `more` for those that are sent again.
  bool cover(RunEnd& end, std::uint32_t more = 0) { return recvs.cover(open_ + more, end); }

 private:
  std::uint32_t open_ = 0;
};

// Takes up to `most` completions for `asker`. Returns how many requests are done, or -1 with `end` set. `moved`: there
// were any.
template <class Asker, class State>
inline int take_responses(Asker& asker, State& s, std::uint64_t most, Picos now, bool measured, bool& moved,
                          RunEnd& end) {
  const std::uint64_t before = s.done();
  const int count = take_completions<kCompletionBatch>(s.cq, most, end, [&](const ibv_wc& wc) {
    if (is_send_id(wc.wr_id)) retire_signaled(s.queues[sent_queue(wc.wr_id)]);
    return asker.take(wc, now, measured, end);
  });
  moved = count > 0;
  return count < 0 ? count : static_cast<int>(s.done() - before);
}

// Asks until the stop or the goal, then waits for the responses. What is measured is what completes between the two
// moments that the thread's window notes.
template <Node N, class Asker, class State>
void client_loop(N& node, Asker& asker, State& s, const RunControl& control, ThreadTally& tally) {
  MeasuredInterval window(tally, s.goal);
  std::uint64_t ops = 0;
  bool running = true, measuring = false;
  Picos check_at = node.now() + s.retry_after;
  for (;;) {
    const Picos now = node.now();
    if (running && !asker.ask(now, tally.end)) return;
    if (!running && asker.open() == 0) return;
    const Phase phase = control.phase.load(std::memory_order_relaxed);
    bool moved = false;
    const int done = take_responses(asker, s, window.left(ops), node.now(), measuring, moved, tally.end);
    if (done < 0) return;
    if (done > 0) {
      ops += static_cast<std::uint64_t>(done);
      tally.done_ops.store(ops, std::memory_order_relaxed);
      if (window.see(node, phase, ops)) running = false;
      if (window.measuring() && !measuring) s.begin_window();
      measuring = window.measuring();
    }
    if (s.retry_after > Picos(0) && now >= check_at) [[unlikely]] {
      if (!asker.ask_again(now, tally.end)) return;
      check_at = now + s.retry_after / 4;
    }
    if (moved) continue;
    if (must_give_up(control, tally.end)) return;
    if (s.retry_after > Picos(0)) {
      node.relax_until(check_at);
    } else {
      node.relax();
    }
  }
}

// The workload of a client's thread, which asks on its first lane. Systems add what it sent and received.
template <class Asker, class State>
class RequestClientEnd : public WorkloadOn<RequestClientEnd<Asker, State>> {
 public:
  template <Node N>
  void step(N& node, const RunControl& control, ThreadTally& tally) {
    client_loop(node, asker_, state_, control, tally);
    window_ = tally.interval.end - tally.interval.begin;
  }
  bool active() const override { return true; }

 protected:
  // `state`: with what its system needs.
  RequestClientEnd(const ThreadSetup& setup, const State& state, Picos retry_after)
      : queues_{SendQueue{.qp = setup.lanes.front().qp,
                          .builder = setup.lanes.front().builder,
                          .depth = setup.operation.tx_depth,
                          .signal_every = setup.operation.signal_every}},
        state_(state) {
    state_.cq = setup.cq;
    state_.queues = queues_;
    state_.retry_after = retry_after;
    state_.goal = setup.goal;
    asker_.state = &state_;
  }

  std::array<SendQueue, 1> queues_;
  State state_;
  Asker asker_;
  Picos window_{0};  // how long the measured window was
};

}  // namespace verbscope
