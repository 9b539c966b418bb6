// A client of echo_rate, which keeps requests outstanding on each QP.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "common/histogram.hpp"
#include "machine/memory.hpp"
#include "microbench/bench/workload.hpp"
#include "microbench/echo/messages.hpp"
#include "microbench/loop/request_loop.hpp"

namespace verbscope {

struct EchoClientLane {
  std::span<ibv_send_wr> requests;  // as many as may be outstanding, one per slot
  std::span<Picos> asked;           // when the request in each slot was posted
  EchoSlots out;                    // requests
  EchoSlots in;                     // responses
  RecvLane recvs;                   // responses by SEND
  std::uint64_t sent = 0, answered = 0;
  std::uint64_t settled = 0;  // the requests up to this number are answered or given up
  SilenceTimer silence;
};

// The data path, as client_loop() calls it.
struct EchoClientState : ClientLoopState {
  std::span<SendQueue> queues;
  std::span<EchoClientLane> lanes;
  std::uint32_t client = 0;
  std::uint32_t size = 0;
  bool by_memory = true;  // responses by WRITE
  bool validate = false;  // every byte, not only the tag
  Picos give_up{0};       // a lane's requests are lost after this long without a response; 0: nothing can be lost
  Histogram latency;      // of the measured interval: from before the post until the response was seen
  std::uint64_t wrong = 0;

  template <Node N>
  void watch(N& node) const {
    for (const EchoClientLane& lane : lanes) {
      if (by_memory) node.watch(lane.in.begin, lane.in.stride * lane.requests.size());
    }
  }

  template <Node N>
  bool ask(N& node, RunEnd& end) {
    for (std::uint32_t i = 0; i < lanes.size(); ++i) {
      EchoClientLane& lane = lanes[i];
      SendQueue& queue = queues[i];
      while (lane.sent - lane.settled < lane.requests.size() && queue.room > 0) {
        const std::uint64_t slot = lane.sent % lane.requests.size();
        lane.asked[slot] = node.now();
        store_word(lane.out.end_of(slot) - kTagBytes, echo_tag(client, ++lane.sent));
        if (!post_one(queue, lane.requests[slot], end)) return false;
      }
    }
    return true;
  }

  bool drained() const {
    for (std::size_t i = 0; i < lanes.size(); ++i) {
      if (lanes[i].settled < lanes[i].sent || queues[i].due > 0) return false;
    }
    return true;
  }

  template <Node N>
  int take(N& node, OperationMeter& meter, RunEnd& end) {
    int taken = 0;
    bool due = !by_memory;
    if (by_memory) {
      node.poll_memory(lanes.size());
      taken = take_written(node, meter, false);
      if (lossy() && taken == 0) taken = take_written(node, meter, true);
    }
    for (const SendQueue& queue : queues) due = due || queue.due > 0;
    if (!due) return taken;
    const int completed = reap(cq, queues, end, [&](const ibv_wc& wc) {
      EchoClientLane& lane = lanes[recv_queue(wc.wr_id)];
      take_response(node, meter, lane, lane.in.end_of(recv_place(wc.wr_id)));
      return post_next_recvs(lane.recvs, recv_queue(wc.wr_id), end);
    });
    return completed < 0 ? -1 : taken + completed;
  }

  template <Node N>
  bool wait(N& node, IdleWait& idle, RunEnd&) {
    if (lossy() && give_up_lost(node.now())) return true;
    if (lossy() && channel == nullptr) {
      node.idle_until(node.now() + give_up);
    } else {
      idle.idle(node);
    }
    return true;
  }

 private:
  bool lossy() const { return give_up > Picos(0); }

  // Takes the responses that were written by now. `over_gaps`: also those after some that are missing.
  template <Node N>
  int take_written(N& node, OperationMeter& meter, bool over_gaps) {
    int taken = 0;
    for (EchoClientLane& lane : lanes) {
      while (lane.settled < lane.sent) {
        const std::uint64_t outstanding = lane.requests.size();
        const std::uint64_t number = next_written(lane.in, outstanding, lane.settled, over_gaps ? outstanding : 1);
        if (number == 0) break;
        take_response(node, meter, lane, lane.in.end_of((number - 1) % outstanding));
        ++taken;
      }
    }
    return taken;
  }

  template <Node N>
  void take_response(N& node, OperationMeter& meter, EchoClientLane& lane, const std::byte* response_end) {
    check_response(lane, response_end, node.now(), meter.measuring());
    meter.add(1);
    meter.note(node, meter.phase());
  }

  // Compares a response with its request. Where requests are given up, a response may be late: another request has its
  // slot.
  void check_response(EchoClientLane& lane, const std::byte* response_end, Picos now, bool measured) {
    std::uint64_t tag;
    std::memcpy(&tag, response_end - kTagBytes, kTagBytes);
    ++lane.answered;
    if (lossy() && number_of(tag) <= lane.settled) return;
    const std::uint64_t slot = (number_of(tag) - 1) % lane.requests.size();
    if (measured) latency.record(now - lane.asked[slot]);
    const std::byte* const asked = lane.out.end_of(slot);
    const std::uint32_t compared = validate ? size : kTagBytes;
    if (std::memcmp(response_end - compared, asked - compared, compared) != 0) ++wrong;
    lane.settled = lossy() && number_of(tag) <= lane.sent ? number_of(tag) : lane.settled + 1;
  }

  // Gives up the requests of lanes without a response for too long. Returns whether there were any.
  bool give_up_lost(Picos now) {
    bool some = false;
    for (EchoClientLane& lane : lanes) {
      if (!lane.silence.expired(lane.sent, lane.settled, now, give_up)) continue;
      lane.settled = lane.sent;
      some = true;
    }
    return some;
  }
};

class EchoClient final : public WorkloadOn<EchoClient> {
 public:
  // Throws Error if the receive queue is too short for what all peers may have outstanding.
  EchoClient(const ThreadSetup& setup, const EchoOptions& options)
      : out_(Bytes(setup.lanes.size() * options.outstanding * echo_stride(setup.operation.payload)), setup.huge_pages),
        mr_(setup.pd, out_.data(), out_.size()),
        messages_(setup, setup.lanes.size() * options.outstanding),
        asked_(setup.lanes.size() * options.outstanding) {
    const Operation& op = setup.operation;
    const bool datagram = options.answers_by_datagram(op);
    if (!options.responses_written())
      recvs_.emplace(setup, setup.lanes.size(), end_aligned_recvs(op, op.payload, options.outstanding, datagram));
    for (std::uint32_t i = 0; i < setup.lanes.size(); ++i) add_lane(setup, options, i);
    state_.cq = setup.cq;
    state_.channel = setup.channel;
    state_.goal = setup.goal;
    state_.queues = queues_;
    state_.lanes = lanes_;
    state_.client = setup.node;
    state_.size = op.payload;
    state_.by_memory = options.responses_written();
    state_.validate = op.validate;
    if (!op.reliable()) state_.give_up = options.give_up;
  }

  template <Node N>
  void step(N& node, const RunControl& control, ThreadTally& tally) {
    state_.watch(node);
    client_loop(node, state_, control, tally);
  }

  bool active() const override { return true; }
  std::uint64_t sent_to(std::uint32_t) const override { return sum(&EchoClientLane::sent); }
  std::uint64_t received() const override { return sum(&EchoClientLane::answered); }
  std::uint64_t wrong() const override { return state_.wrong; }
  std::string memory() const override { return out_.describe(); }
  const Histogram& latency() const { return state_.latency; }

 private:
  std::uint64_t sum(std::uint64_t EchoClientLane::*count) const {
    std::uint64_t total = 0;
    for (const EchoClientLane& lane : lanes_) total += lane.*count;
    return total;
  }

  void add_lane(const ThreadSetup& setup, const EchoOptions& options, std::uint32_t index) {
    const Operation& op = setup.operation;
    const Lane& lane = setup.lanes[index];
    const LanePeer& peer = lane.peers.front();
    const std::uint64_t stride = echo_stride(op.payload);
    EchoClientLane mine;
    mine.out = {out_.data() + index * options.outstanding * stride, stride};
    for (std::uint32_t j = 0; j < options.outstanding; ++j) {
      fill_payload(op.seed, j % kMaxPayloadSlots, {mine.out.end_of(j) - op.payload, op.payload});
    }
    mine.asked = std::span(asked_).subspan(index * options.outstanding, options.outstanding);
    mine.requests = messages_.build(index * options.outstanding, options.outstanding, index, mine.out, mr_.lkey(), peer,
                                    options.requests_written());
    if (!facts(op.transport).connected) {
      for (ibv_send_wr& request : mine.requests) request.wr.ud = peer.qp.address();
    }
    if (options.responses_written()) {
      mine.in = slots_of(setup.region, lane, op.payload);
    } else {
      mine.recvs = recvs_->post(options.mode == EchoMode::write_send ? lane.companion : lane.qp, index);
      mine.in = slots_of(mine.recvs, op.payload);
    }
    lanes_.push_back(mine);
    queues_.push_back({.qp = lane.qp,
                       .builder = lane.builder,
                       .index = index,
                       .depth = op.tx_depth,
                       .signal_every = op.signal_every});
  }

  Buffer out_;
  Mr mr_;
  EchoSends messages_;
  std::vector<Picos> asked_;
  std::optional<RecvRings> recvs_;
  std::vector<SendQueue> queues_;
  std::vector<EchoClientLane> lanes_;
  EchoClientState state_;
};

}  // namespace verbscope
