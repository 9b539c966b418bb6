// The sender of incast_rate: flows, each with a window of operations on a QP of its own, whose round trips are measured
// one by one. Over RC an operation is over when it completes. UC and UD acknowledge nothing: there it is over when the
// receiver has answered.
//
// A measured interval begins and ends with a completion. If none arrives for 20 ms it begins or ends without one, so
// that flows that stand still do not hold up the figures of the others.
#pragma once

#include <endian.h>
#include <infiniband/verbs.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "common/histogram.hpp"
#include "machine/memory.hpp"
#include "microbench/bench/workload.hpp"
#include "microbench/loop/payload.hpp"
#include "microbench/loop/recv_ring.hpp"
#include "microbench/loop/request_loop.hpp"
#include "microbench/loop/send_queue.hpp"
#include "verbs/ibv_codes.hpp"

namespace verbscope {

struct FlowOptions {
  std::uint32_t window = 32;  // outstanding operations per QP
  bool together = false;      // a window of all flows must be over before the next begins
  Picos give_up{0};           // a datagram without an answer for this long is lost
};

// Whether operations end by answers, because the transport acknowledges nothing.
inline bool needs_answers(const Operation& op) {
  return !facts(op.transport).reliable;
}

// Bytes of a target's memory that each flow has.
inline std::uint64_t flow_stride(const Operation& op) {
  return payload_stride(op.payload);
}

// The immediate of a datagram and of its answer: the sender, and the datagram's number on its QP.
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
  std::uint64_t measured = 0;  // operations over in the measured interval, without lost ones
  SilenceTimer silence;
};

// The data path, as client_loop() calls it.
struct FlowSenderState : ClientLoopState {
  std::span<SendQueue> queues;  // one per flow
  std::span<Flow> flows;
  std::uint32_t sender = 0;
  bool answered = false;  // operations end by answers
  bool together = false;  // all outstanding operations must be over before more are posted
  Picos give_up{0};       // without an answer for this long a flow's datagrams are lost
  std::uint64_t lost = 0;
  Histogram round_trips;  // of the measured interval

  template <Node N>
  bool ask(N& node, RunEnd& end) {
    if (together && !drained()) return true;
    for (std::uint32_t i = 0; i < flows.size(); ++i) {
      Flow& flow = flows[i];
      while (flow.sent - flow.over < flow.requests.size() && queues[i].room > 0) {
        const std::uint64_t slot = flow.sent % flow.requests.size();
        ibv_send_wr& request = flow.requests[slot];
        if (answered) request.imm_data = htobe32(flow_tag(sender, flow.sent));
        flow.asked[slot] = node.now();
        ++flow.sent;
        if (!post_one(queues[i], request, end)) return false;
      }
    }
    return true;
  }

  bool drained() const {
    for (std::size_t i = 0; i < flows.size(); ++i) {
      if (flows[i].over < flows[i].sent || queues[i].due > 0) return false;
    }
    return true;
  }

  template <Node N>
  int take(N& node, OperationMeter& meter, RunEnd& end) {
    // A round counts as a whole, and after the stop everything is taken.
    const std::uint64_t most = together || !meter.running() ? kCompletionBatch : meter.left();
    const int count = take_completions<kCompletionBatch>(cq, most, end, [&](const ibv_wc& wc) {
      if (is_send_id(wc.wr_id)) {
        const std::uint32_t index = sent_queue(wc.wr_id);
        retire_signaled(queues[index]);
        if (!answered) end_operation(node, meter, flows[index]);
        return true;
      }
      Flow& flow = flows[recv_queue(wc.wr_id)];
      take_answer(node, meter, flow, be32toh(wc.imm_data) & 0xffff);
      return post_next_recvs(flow.answers, recv_queue(wc.wr_id), end);
    });
    if (count < 0) return -1;
    const Phase phase = meter.phase();
    const bool whole = together ? drained() : count > 0;
    if (meter.running() && (whole || late(node, meter, phase))) meter.note(node, phase);
    return count;
  }

  template <Node N>
  bool wait(N& node, IdleWait& idle, RunEnd&) {
    if (answered && give_up_lost(node.now())) return true;
    if (channel == nullptr) {
      node.idle_until(node.now() + (answered ? give_up : kPatience));
    } else {
      idle.idle(node);
    }
    return true;
  }

 private:
  static constexpr Picos kPatience = std::chrono::milliseconds(20);

  // Whether the phase changed so long ago that the measured interval no longer waits for a completion.
  template <Node N>
  bool late(N& node, const OperationMeter& meter, Phase phase) {
    if (phase == meter.seen()) return false;
    if (std::exchange(changed_to_, phase) != phase) changed_at_ = node.now();
    return phase == Phase::stop || node.now() - changed_at_ >= kPatience;
  }

  // Answers arrive in order: requests before an answered one that have no answer are lost. An answer to a request that
  // was given up is ignored.
  template <Node N>
  void take_answer(N& node, OperationMeter& meter, Flow& flow, std::uint32_t number) {
    const std::uint64_t ahead = (number - flow.over) & 0xffff;
    if (ahead >= flow.sent - flow.over) return;
    lost += ahead;
    flow.over += ahead;
    end_operation(node, meter, flow);
  }

  template <Node N>
  void end_operation(N& node, OperationMeter& meter, Flow& flow) {
    const Picos time = node.now() - flow.asked[flow.over % flow.requests.size()];
    ++flow.over;
    meter.add(1);
    if (!meter.measuring()) return;
    ++flow.measured;
    round_trips.record(time);
  }

  bool give_up_lost(Picos now) {
    bool some = false;
    for (Flow& flow : flows) {
      if (!flow.silence.expired(flow.sent, flow.over, now, give_up)) continue;
      lost += flow.sent - flow.over;
      flow.over = flow.sent;
      some = true;
    }
    return some;
  }

  Phase changed_to_ = Phase::warmup;  // the last change of the phase, and when it was noticed
  Picos changed_at_{0};
};

class FlowSender final : public WorkloadOn<FlowSender> {
 public:
  FlowSender(const ThreadSetup& setup, const FlowOptions& options)
      : buffer_(Bytes(setup.lanes.size() * flow_stride(setup.operation)), setup.huge_pages),
        mr_(setup.pd, buffer_.data(), buffer_.size()),
        segments_(setup.lanes.size()),
        requests_(setup.lanes.size() * options.window),
        asked_(requests_.size()) {
    const Operation& op = setup.operation;
    state_.answered = needs_answers(op);
    if (state_.answered) {
      answers_.emplace(setup, setup.lanes.size(),
                       end_aligned_recvs(op, 0, options.window, !facts(op.transport).connected));
    }
    for (std::uint32_t i = 0; i < setup.lanes.size(); ++i) add_flow(setup, options, i);
    state_.cq = setup.cq;
    state_.channel = setup.channel;
    state_.goal = setup.goal;
    state_.queues = queues_;
    state_.flows = flows_;
    state_.sender = setup.node;
    state_.together = options.together;
    state_.give_up = options.give_up;
  }

  template <Node N>
  void step(N& node, const RunControl& control, ThreadTally& tally) {
    client_loop(node, state_, control, tally);
  }

  bool active() const override { return true; }
  // The packets of several flows arrive in turn, so that their messages end together; those of a window are bounded as
  // a whole.
  std::uint64_t round() const override { return state_.together ? 0 : flows_.size(); }
  std::string memory() const override { return buffer_.describe(); }
  const FlowSenderState& state() const { return state_; }

 private:
  void add_flow(const ThreadSetup& setup, const FlowOptions& options, std::uint32_t index) {
    const Operation& op = setup.operation;
    const Lane& lane = setup.lanes[index];
    const LanePeer& peer = lane.peers.front();
    std::byte* const begin = buffer_.data() + index * flow_stride(op);
    if (facts(op.verb).carries_payload) fill_payload(op.seed, index % kMaxPayloadSlots, {begin, op.payload});
    segments_[index] = {reinterpret_cast<std::uint64_t>(begin), op.payload, mr_.lkey()};
    Flow flow;
    flow.requests = std::span(requests_).subspan(std::size_t{index} * options.window, options.window);
    flow.asked = std::span(asked_).subspan(std::size_t{index} * options.window, options.window);
    for (ibv_send_wr& wr : flow.requests) {
      wr.wr_id = send_id(index);
      wr.opcode = request_opcode(op.verb, state_.answered);
      wr.sg_list = &segments_[index];
      wr.num_sge = op.payload > 0 ? 1 : 0;
      if (op.inlined) wr.send_flags = IBV_SEND_INLINE;
      if (!facts(op.transport).connected) {
        wr.wr.ud = peer.qp.address();
      } else if (facts(op.verb).one_sided) {
        wr.wr.rdma = {peer.region.address + peer.slice().offset, peer.region.rkey};
      }
    }
    if (answers_) flow.answers = answers_->post(lane.qp, index);
    flows_.push_back(flow);
    queues_.push_back({.qp = lane.qp,
                       .builder = lane.builder,
                       .index = index,
                       .depth = op.tx_depth,
                       .signal_every = state_.answered ? op.signal_every : 1});
  }

  Buffer buffer_;
  Mr mr_;
  std::vector<ibv_sge> segments_;
  std::vector<ibv_send_wr> requests_;
  std::vector<Picos> asked_;
  std::optional<RecvRings> answers_;
  std::vector<SendQueue> queues_;
  std::vector<Flow> flows_;
  FlowSenderState state_;
};

}  // namespace verbscope
