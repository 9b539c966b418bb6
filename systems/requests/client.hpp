// The client of a request system: its requests by thread of the server, the RECVs for their responses, and its loop.
// Data path.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "microbench/bench/benchmark.hpp"
#include "microbench/bench/workload.hpp"
#include "microbench/loop/recv_ring.hpp"
#include "microbench/loop/request_loop.hpp"
#include "microbench/loop/send_queue.hpp"
#include "systems/requests/peers.hpp"

namespace verbscope {

// A request that waits for its response. Systems add members.
struct RequestSlot {
  Picos last{0};             // when it was last sent
  std::uint64_t number = 0;  // among those to its thread of the server
  bool open = false;
};

// The requests of a client to one thread of the server: number n is in slot n % slots.
template <class Slot>
struct RequestLane {
  std::span<Slot> slots;
  std::uint64_t sent = 0;

  // The slot of the next request, which is free unless open.
  Slot& next() { return slots[sent % slots.size()]; }
  // Opens the slot of the next request, which is sent now.
  Slot& begin(Picos now) {
    Slot& slot = next();
    slot.last = now;
    slot.number = sent++;
    slot.open = true;
    return slot;
  }
  // The open request with this tag (peers.hpp); null: it was answered before.
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

// Lanes with `each` slots of `slots`, one after the other.
template <class Lane, class Slots>
std::vector<Lane> lanes_over(Slots& slots, std::size_t each) {
  std::vector<Lane> lanes(slots.size() / each);
  for (std::size_t i = 0; i < lanes.size(); ++i) lanes[i].slots = std::span(slots).subspan(i * each, each);
  return lanes;
}

// The RECVs of a client: one per expected response, posted before the request.
struct ResponseRecvs {
  RecvLane ring;
  std::uint32_t queue = 0;  // of the thread, for the report of a failed post
  std::uint32_t posted = 0;

  // Posts RECVs until there are `responses` of them, or no more. False: a post failed.
  bool cover(std::uint32_t responses, RunEnd& end) {
    for (; posted < responses && posted < ring.length; ++posted) {
      if (!post_next_recvs(ring, queue, end)) return false;
    }
    return true;
  }

  // The message of the RECV that `wc` completes, valid until RECVs are posted again.
  const std::byte* take_body(const ibv_wc& wc) {
    --posted;
    return ring.payloads + recv_place(wc.wr_id) * ring.stride;
  }
  // The same for a message of 8 bytes.
  std::uint64_t take(const ibv_wc& wc) {
    std::uint64_t value;
    std::memcpy(&value, take_body(wc), sizeof value);
    return value;
  }
};

// The state of a client. Systems add `done()`, the number of completed requests, and `begin_interval()`, which discards
// earlier measurements.
struct RequestClientState : ClientLoopState {
  std::span<SendQueue> queues;
  Picos retry_after{0};  // a request without a response is sent again after it; 0: never
};

// Sends the requests of a client. Systems add `state` and the functions that MessageClient calls: `ask(now, end)` sends
// requests until enough are outstanding, `take(wc, now, measured, end)` takes a completion, `ask_again(now, end)`
// resends requests. Each returns false after a failure.
class RequestAsker {
 public:
  ResponseRecvs recvs;
  std::uint32_t outstanding = 1;  // largest number of outstanding requests

  std::uint32_t open() const { return open_; }

 protected:
  bool may_ask(const SendQueue& queue) const { return open_ < outstanding && queue.room > 0; }
  // Counts a new request. False: a RECV could not be posted.
  bool open_one(RunEnd& end) { return recvs.cover(++open_, end); }
  void close_one() { --open_; }
  // Posts the RECVs that the outstanding requests need, and `more` for resent ones.
  bool cover(RunEnd& end, std::uint32_t more = 0) { return recvs.cover(open_ + more, end); }

 private:
  std::uint32_t open_ = 0;
};

// Takes up to `most` completions for `asker`. Returns how many requests completed, or -1 with `end` set. `moved`: there
// were completions.
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

// A client whose responses arrive as completions, as client_loop() calls it.
template <Node N, class Asker, class State>
class MessageClient : public ClientLoopState {
 public:
  MessageClient(N& node, Asker& asker, State& state)
      : ClientLoopState(state), asker_(asker), s_(state), check_at_(node.now() + state.retry_after) {}

  bool ask(N& node, RunEnd& end) {
    asked_at_ = node.now();
    return asker_.ask(asked_at_, end);
  }
  bool drained() const { return asker_.open() == 0; }

  int take(N& node, OperationMeter& meter, RunEnd& end) {
    const Picos now = meter.running() ? asked_at_ : node.now();
    const Phase phase = meter.phase();
    const bool measured = meter.measuring();
    bool moved = false;
    const int done = take_responses(asker_, s_, meter.left(), node.now(), measured, moved, end);
    if (done < 0) return -1;
    if (done > 0 && meter.add_and_note(node, phase, static_cast<std::uint64_t>(done))) s_.begin_interval();
    if (s_.retry_after > Picos(0) && now >= check_at_) [[unlikely]] {
      if (!asker_.ask_again(now, end)) return -1;
      check_at_ = now + s_.retry_after / 4;
    }
    return moved ? 1 : 0;
  }

  bool wait(N& node, IdleWait& idle, RunEnd&) {
    if (s_.retry_after > Picos(0)) {
      node.idle_until(check_at_);
    } else {
      idle.idle(node);
    }
    return true;
  }

 private:
  Asker& asker_;
  State& s_;
  Picos asked_at_{0};
  Picos check_at_;  // requests are checked for their age then
};

template <Node N, class Asker, class State>
void client_loop(N& node, Asker& asker, State& s, const RunControl& control, ThreadTally& tally) {
  MessageClient client(node, asker, s);
  client_loop(node, client, control, tally);
}

// The workload of a client thread, which sends on its first lane. Systems add sent_to() and received().
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
  // `state`: with the members that the system adds.
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
  Picos window_{0};  // length of the measured interval
};

}  // namespace verbscope
