// The data path of flows: a window of operations on each QP, whose round trips are measured one by one. Over RC an
// operation is over when it completes. UC and UD acknowledge nothing: there it is over when the receiver has answered.
// A measured interval begins and ends with a completion. When none comes for 20 ms it begins or ends without one, so
// that flows that stand still do not hold up the figures of the others.
#pragma once

#include <endian.h>
#include <infiniband/verbs.h>

#include <chrono>
#include <cstdint>
#include <span>
#include <utility>

#include "common/histogram.hpp"
#include "common/ring.hpp"
#include "microbench/echo/messages.hpp"

namespace verbscope {

// The immediate of a datagram and of its answer: who sent it, and its number on its QP.
constexpr std::uint32_t flow_tag(std::uint32_t sender, std::uint64_t number) {
  return sender << 16 | (number & 0xffff);
}
constexpr std::uint32_t sender_of(std::uint32_t tag) {
  return tag >> 16;
}

struct Flow {
  std::span<ibv_send_wr> requests;  // as many as may be outstanding
  std::span<Picos> asked;           // when each was posted
  RecvLane answers;                 // without acknowledgements
  std::uint64_t sent = 0, over = 0;
  std::uint64_t measured = 0;  // of those that are over and were not lost, in the window
  std::uint64_t seen = 0;      // `over` when it was looked at last, and the time since when it has been that
  Picos since{0};
};

struct FlowSenderState {
  ibv_cq* cq = nullptr;
  ibv_comp_channel* channel = nullptr;
  std::span<SendQueue> queues;  // one a flow
  std::span<Flow> flows;
  std::uint32_t sender = 0;
  bool answered = false;  // operations end by answers
  bool together = false;  // all that is outstanding must be over before more is asked for
  Picos give_up{0};       // without an answer for so long a flow's datagrams are lost
  std::uint64_t lost = 0;
  Histogram round_trips;  // of the window
  std::uint64_t goal = MeasuredInterval::kNoGoal;
};

template <Node N>
class FlowSenderLoop {
 public:
  FlowSenderLoop(N& node, FlowSenderState& state, const RunControl& control, ThreadTally& tally)
      : node_(node),
        s_(state),
        control_(control),
        tally_(tally),
        window_(tally, state.goal),
        wait_(state.cq, state.channel, tally) {}

  // Sends until the stop, then waits until nothing is outstanding. tally.end says how it ended.
  void run() {
    for (bool running = true;;) {
      if (running && !fill()) return;
      const int count = take();
      if (count < 0) return;
      const Phase phase = control_.phase.load(std::memory_order_relaxed);
      const bool whole = s_.together ? idle() : count > 0;  // a round counts as a whole
      if (running && (whole || late(phase)) && window_.see(node_, phase, ops_)) running = false;
      if (!running && idle()) return;
      if (count > 0) continue;
      if (must_give_up(control_, tally_.end)) return;
      if (s_.answered && give_up_lost()) continue;
      if (s_.channel == nullptr) {
        node_.idle_until(node_.now() + (s_.answered ? s_.give_up : kPatience));
      } else {
        wait_.idle(node_);
      }
    }
  }

 private:
  static constexpr Picos kPatience = std::chrono::milliseconds(20);

  // Whether the phase turned so long ago that the measured interval waits for no completion any more.
  bool late(Phase phase) {
    if (phase == window_.seen()) return false;
    if (std::exchange(turned_to_, phase) != phase) turned_at_ = node_.now();
    return phase == Phase::stop || node_.now() - turned_at_ >= kPatience;
  }

  bool fill() {
    if (s_.together && !idle()) return true;
    for (std::uint32_t i = 0; i < s_.flows.size(); ++i) {
      Flow& flow = s_.flows[i];
      while (flow.sent - flow.over < flow.requests.size() && s_.queues[i].room > 0) {
        const std::uint64_t slot = flow.sent % flow.requests.size();
        ibv_send_wr& request = flow.requests[slot];
        if (s_.answered) request.imm_data = htobe32(flow_tag(s_.sender, flow.sent));
        flow.asked[slot] = node_.now();
        ++flow.sent;
        if (!post_one(s_.queues[i], request, tally_.end)) return false;
      }
    }
    return true;
  }

  int take() {
    return take_completions<kCompletionBatch>(s_.cq, kCompletionBatch, tally_.end, [this](const ibv_wc& wc) {
      if (is_send_id(wc.wr_id)) {
        const std::uint32_t index = sent_queue(wc.wr_id);
        retire_signaled(s_.queues[index]);
        if (!s_.answered) over(s_.flows[index]);
        return true;
      }
      Flow& flow = s_.flows[recv_queue(wc.wr_id)];
      take_answer(flow, be32toh(wc.imm_data) & 0xffff);
      return post_recv(flow.answers, recv_queue(wc.wr_id), tally_.end);
    });
  }

  // Answers come in order. One of them says that requests before it which have no answer are lost. An answer to a
  // request that was given up is ignored.
  void take_answer(Flow& flow, std::uint32_t number) {
    const std::uint64_t ahead = (number - flow.over) & 0xffff;
    if (ahead >= flow.sent - flow.over) return;
    s_.lost += ahead;
    flow.over += ahead;
    over(flow);
  }

  void over(Flow& flow) {
    const Picos time = node_.now() - flow.asked[flow.over % flow.requests.size()];
    ++flow.over;
    tally_.done_ops.store(++ops_, std::memory_order_relaxed);
    if (!window_.measuring()) return;
    ++flow.measured;
    s_.round_trips.record(time);
  }

  bool give_up_lost() {
    bool some = false;
    for (Flow& flow : s_.flows) {
      if (flow.over == flow.sent || flow.over != flow.seen) {
        flow.seen = flow.over;
        flow.since = node_.now();
      } else if (node_.now() - flow.since >= s_.give_up) {
        s_.lost += flow.sent - flow.over;
        flow.over = flow.sent;
        some = true;
      }
    }
    return some;
  }

  bool idle() const {
    for (std::size_t i = 0; i < s_.flows.size(); ++i) {
      if (s_.flows[i].over < s_.flows[i].sent || s_.queues[i].due > 0) return false;
    }
    return true;
  }

  N& node_;
  FlowSenderState& s_;
  const RunControl& control_;
  ThreadTally& tally_;
  MeasuredInterval window_;
  IdleWait wait_;
  std::uint64_t ops_ = 0;
  Phase turned_to_ = Phase::warmup;  // and when
  Picos turned_at_{0};
};

// What answers the flows of one QP.
struct AnswerLane {
  RecvLane recvs;
  ibv_send_wr answer;                      // no payload
  std::span<const ibv_send_wr> addresses;  // UD: where the answer to each sender goes
};

struct FlowAnswererState {
  ibv_cq* cq = nullptr;
  ibv_comp_channel* channel = nullptr;
  std::span<SendQueue> queues;  // one a lane
  std::span<AnswerLane> lanes;
  struct Waiting {
    std::uint32_t lane;
    std::uint32_t tag;  // as it came
  };
  Ring<Waiting> waiting;
  std::uint64_t head = 0, tail = 0;
  std::uint64_t wrong = 0;  // that name no sender
};

// Answers until told to quit.
template <Node N>
void flow_answerer_loop(N& node, FlowAnswererState& s, const RunControl& control, ThreadTally& tally) {
  IdleWait wait(s.cq, s.channel, tally);
  for (;;) {
    const int count = reap(s.cq, s.queues, tally.end, [&](const ibv_wc& wc) {
      const std::uint32_t lane = recv_queue(wc.wr_id);
      s.waiting[s.tail++] = {lane, wc.imm_data};
      return post_recv(s.lanes[lane].recvs, lane, tally.end);
    });
    if (count < 0) return;
    for (; s.head != s.tail && s.queues[s.waiting[s.head].lane].room > 0; ++s.head) {
      const auto [index, tag] = s.waiting[s.head];
      AnswerLane& lane = s.lanes[index];
      if (!lane.addresses.empty()) {
        const std::uint32_t sender = sender_of(be32toh(tag));
        if (sender >= lane.addresses.size()) {
          ++s.wrong;
          continue;
        }
        lane.answer.wr.ud = lane.addresses[sender].wr.ud;
      }
      lane.answer.imm_data = tag;
      if (!post_one(s.queues[index], lane.answer, tally.end)) return;
      tally.done_ops.store(tally.done_ops.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    }
    if (count == 0 && !wait.idle_unless_quit(node, control)) return;
  }
}

}  // namespace verbscope
