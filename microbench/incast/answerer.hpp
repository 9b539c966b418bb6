// The receiver of incast_rate over UC and UD, which answers each message with a header-only SEND.
#pragma once

#include <endian.h>
#include <infiniband/verbs.h>

#include <cstdint>
#include <span>
#include <vector>

#include "common/ring.hpp"
#include "microbench/bench/workload.hpp"
#include "microbench/incast/sender.hpp"
#include "microbench/loop/recv_ring.hpp"
#include "microbench/loop/request_loop.hpp"
#include "microbench/loop/send_queue.hpp"

namespace verbscope {

// Answers the flows of one QP.
struct AnswerLane {
  RecvLane recvs;
  ibv_send_wr answer;                    // no payload
  std::span<const UdAddress> addresses;  // UD: where the answer to each sender goes
};

struct FlowAnswererState : ServerLoopState {
  std::span<SendQueue> queues;  // one per lane
  std::span<AnswerLane> lanes;
  struct Waiting {
    std::uint32_t lane;
    std::uint32_t tag;  // in network order
  };
  Ring<Waiting> waiting;
  std::uint64_t head = 0, tail = 0;
  std::uint64_t wrong = 0;  // messages that name no sender
};

// One pass of server_loop().
inline int answer_flows(FlowAnswererState& s, RunEnd& end) {
  const int count = reap(s.cq, s.queues, end, [&](const ibv_wc& wc) {
    const std::uint32_t lane = recv_queue(wc.wr_id);
    s.waiting[s.tail++] = {lane, wc.imm_data};
    return post_next_recvs(s.lanes[lane].recvs, lane, end);
  });
  if (count < 0) return -1;
  for (; s.head != s.tail && s.queues[s.waiting[s.head].lane].room > 0; ++s.head) {
    const auto [index, tag] = s.waiting[s.head];
    AnswerLane& lane = s.lanes[index];
    if (!lane.addresses.empty()) {
      const std::uint32_t sender = sender_of(be32toh(tag));
      if (sender >= lane.addresses.size()) {
        ++s.wrong;
        continue;
      }
      lane.answer.wr.ud = lane.addresses[sender];
    }
    lane.answer.imm_data = tag;
    if (!post_one(s.queues[index], lane.answer, end)) return -1;
    ++s.served;
  }
  return count;
}

class FlowAnswerer final : public WorkloadOn<FlowAnswerer> {
 public:
  // Throws Error if the receive queue is too short for what all senders may have outstanding.
  FlowAnswerer(const ThreadSetup& setup, const FlowOptions& options)
      : recvs_(setup, setup.lanes.size(),
               end_aligned_recvs(setup.operation, setup.operation.payload, messages_per_lane(setup, options),
                                 !facts(setup.operation.transport).connected)),
        addresses_(setup.lanes.size()) {
    for (std::uint32_t i = 0; i < setup.lanes.size(); ++i) add_lane(setup, i);
    state_.cq = setup.cq;
    state_.channel = setup.channel;
    state_.queues = queues_;
    state_.lanes = lanes_;
    state_.waiting.resize(setup.lanes.size() * recvs_for(setup.operation, messages_per_lane(setup, options)));
  }

  template <Node N>
  void step(N& node, const RunControl& control, ThreadTally& tally) {
    server_loop(node, state_, control, tally,
                [](N&, FlowAnswererState& s, RunEnd& end) { return answer_flows(s, end); });
  }

  bool active() const override { return false; }
  bool counts() const override { return false; }
  std::uint64_t wrong() const override { return state_.wrong; }

 private:
  // Messages that may arrive at once.
  static std::uint64_t messages_per_lane(const ThreadSetup& setup, const FlowOptions& options) {
    return options.window * (setup.lanes.empty() ? 1 : setup.lanes.front().peers.size());
  }

  void add_lane(const ThreadSetup& setup, std::uint32_t index) {
    const Lane& lane = setup.lanes[index];
    AnswerLane mine{};
    mine.recvs = recvs_.post(lane.qp, index);
    mine.answer.wr_id = send_id(index);
    mine.answer.opcode = IBV_WR_SEND_WITH_IMM;
    if (!facts(setup.operation.transport).connected) {
      addresses_[index].resize(lane.peers.size());
      for (const LanePeer& sender : lane.peers) addresses_[index].at(sender.node) = sender.qp.address();
      mine.addresses = addresses_[index];
    }
    lanes_.push_back(mine);
    queues_.push_back({.qp = lane.qp,
                       .builder = lane.builder,
                       .index = index,
                       .depth = setup.operation.tx_depth,
                       .signal_every = setup.operation.signal_every});
  }

  RecvRings recvs_;
  std::vector<std::vector<UdAddress>> addresses_;  // UD: by lane, then sender
  std::vector<SendQueue> queues_;
  std::vector<AnswerLane> lanes_;
  FlowAnswererState state_;
};

}  // namespace verbscope
