// The server of echo_rate, which answers each request with its bytes. A pass posts responses to the requests that have
// arrived, up to post_list of them with one doorbell, and does not wait for more. Responses to the requests of one lane
// go out on one queue, in order: its own, or for datagrams one that several lanes of its port share.
#pragma once

#include <infiniband/verbs.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "common/ring.hpp"
#include "microbench/bench/workload.hpp"
#include "microbench/echo/messages.hpp"
#include "microbench/loop/request_loop.hpp"

namespace verbscope {

struct EchoServerLane {
  std::span<ibv_send_wr> responses;      // response j sends back the bytes in slot j
  EchoSlots in;                          // requests
  RecvLane recvs;                        // requests by SEND
  std::uint32_t queue = 0;               // responses go out on it
  std::span<const UdAddress> addresses;  // UD: where the response to client i goes
  std::span<std::uint64_t> answered;     // UD: responses to client i
  std::uint64_t served = 0;              // requests taken
  std::uint64_t last = 0;                // requests by WRITE: the number of the last
};

struct EchoServerState : ServerLoopState {
  std::span<SendQueue> queues;  // one per lane
  std::span<EchoServerLane> lanes;
  std::uint32_t post_list = 1;  // largest number of responses per doorbell
  Nanos work{0};                // computing time per request
  BatchCounts batches;          // of the measured interval
  bool by_memory = true;        // requests by WRITE
  bool lossy = false;           // messages can be lost
  std::uint32_t first = 0;      // lane at which a pass over written requests begins
  Ring<std::uint64_t> waiting;  // RECVs (wr_id) with a request that is not answered yet
  std::uint64_t waiting_head = 0, waiting_tail = 0;
  std::uint64_t wrong = 0;  // requests that name no client

  void begin_interval() { batches = {}; }

  template <Node N>
  void watch(N& node) const {
    for (const EchoServerLane& lane : lanes) {
      if (by_memory) node.watch(lane.in.begin, lane.in.stride * lane.responses.size());
    }
  }
};

// Computes for `time`, as long as a request takes.
template <Node N>
inline void compute(N& node, Nanos time) {
  const Picos until = node.now() + time;
  node.compute(time);
  while (node.now() < until) {  // a host does nothing in compute()
  }
}

// Posts the list of the queue, if there is one.
inline bool post_responses(EchoServerState& s, SendQueue& queue, RunEnd& end) {
  return post_appended(queue, s.post_list, s.measured ? &s.batches : nullptr, end);
}

// Appends `response` to the list of the lane's queue, which must have room, and posts the list when it is full.
template <Node N>
inline bool answer(N& node, EchoServerState& s, EchoServerLane& lane, ibv_send_wr& response, RunEnd& end) {
  if (s.work > Nanos(0)) compute(node, s.work);
  SendQueue& queue = s.queues[lane.queue];
  response.wr_id = send_id(lane.queue);
  append(queue, response);
  if (queue.list.count < s.post_list) return true;
  return post_responses(s, queue, end);
}

// Posts the lists that are not full.
inline bool end_pass(EchoServerState& s, RunEnd& end) {
  if (s.post_list == 1) return true;
  for (SendQueue& queue : s.queues) {
    if (!post_responses(s, queue, end)) return false;
  }
  return true;
}

// Answers the requests that were written by now, from each lane at most as many as can be outstanding. `over_gaps`:
// also those after some that are missing. The next pass begins with the first lane that found its queue full, so that
// no lane starves. Returns how many were answered; -1: a post failed.
template <Node N>
inline int serve_written(N& node, EchoServerState& s, bool over_gaps, RunEnd& end) {
  const auto count = static_cast<std::uint32_t>(s.lanes.size());
  const std::uint32_t first = s.first;
  bool left = false;
  int answered = 0;
  for (std::uint32_t k = 0; k < count; ++k) {
    const std::uint32_t i = first + k < count ? first + k : first + k - count;
    EchoServerLane& lane = s.lanes[i];
    const std::uint64_t served = lane.served, outstanding = lane.responses.size();
    while (lane.served - served < outstanding) {
      const std::uint64_t number = next_written(lane.in, outstanding, lane.last, over_gaps ? outstanding : 1);
      if (number == 0) break;
      if (s.queues[lane.queue].room == 0) {
        if (!left && lane.served == served) {
          s.first = i;
          left = true;
        }
        break;
      }
      lane.last = number;
      ++lane.served;
      ++answered;
      if (!answer(node, s, lane, lane.responses[(number - 1) % outstanding], end)) return -1;
    }
  }
  s.served += static_cast<std::uint64_t>(answered);
  return end_pass(s, end) ? answered : -1;
}

// Answers the requests that wait in RECVs while there is room. The RECV is posted again first: its slot is filled only
// when as many more requests have arrived as there are RECVs, and a client sends those after it has this response.
template <Node N>
inline bool serve_received(N& node, EchoServerState& s, RunEnd& end) {
  while (s.waiting_head != s.waiting_tail) {
    const std::uint64_t wr_id = s.waiting[s.waiting_head];
    const std::uint32_t index = recv_queue(wr_id);
    EchoServerLane& lane = s.lanes[index];
    if (s.queues[lane.queue].room == 0) break;
    ++s.waiting_head;
    ++lane.served;
    ++s.served;
    ibv_send_wr& response = lane.responses[recv_place(wr_id)];
    if (!post_next_recvs(lane.recvs, index, end)) return false;
    if (!lane.addresses.empty()) {
      std::uint64_t tag;
      std::memcpy(&tag, lane.in.end_of(recv_place(wr_id)) - kTagBytes, kTagBytes);
      if (client_of(tag) >= lane.addresses.size()) {
        ++s.wrong;
        continue;
      }
      response.wr.ud = lane.addresses[client_of(tag)];
      ++lane.answered[client_of(tag)];
    }
    if (!answer(node, s, lane, response, end)) return false;
  }
  return end_pass(s, end);
}

// Takes completions until the requests by SEND fill a list, or there are no more. Returns how many, or -1 with `end`
// set.
inline int take_completed(EchoServerState& s, RunEnd& end) {
  int all = 0;
  for (;;) {
    const int count = reap(s.cq, s.queues, end, [&s](const ibv_wc& wc) {
      s.waiting[s.waiting_tail++] = wc.wr_id;
      return true;
    });
    if (count < 0) return -1;
    all += count;
    if (count < kCompletionBatch || s.waiting_tail - s.waiting_head >= s.post_list) return all;
  }
}

// One pass of server_loop().
template <Node N>
inline int echo_pass(N& node, EchoServerState& s, RunEnd& end) {
  int moved = 0;
  bool due = !s.by_memory;
  if (s.by_memory) {
    node.poll_memory(s.lanes.size());
    moved = serve_written(node, s, false, end);
    if (s.lossy && moved == 0) moved = serve_written(node, s, true, end);
    if (moved < 0) return -1;
  }
  for (const SendQueue& queue : s.queues) due = due || queue.due > 0;
  if (!due) return moved;
  const int completed = take_completed(s, end);
  return completed < 0 || !serve_received(node, s, end) ? -1 : moved + completed;
}

class EchoServer final : public WorkloadOn<EchoServer> {
 public:
  // Throws Error if the receive queue is too short for what all peers may have outstanding.
  EchoServer(const ThreadSetup& setup, const EchoOptions& options)
      : slots_(slots_per_lane(setup, options)),
        messages_(setup, setup.lanes.size() * slots_),
        addresses_(setup.lanes.size()),
        answered_(setup.lanes.size()) {
    const Operation& op = setup.operation;
    if (!options.requests_written()) {
      const bool datagram = !facts(op.transport).connected;
      recvs_.emplace(setup, setup.lanes.size(),
                     end_aligned_recvs(op, op.payload, requests_per_lane(setup, options), datagram));
    }
    for (std::uint32_t i = 0; i < setup.lanes.size(); ++i) add_lane(setup, options, i);
    if (options.answers_by_datagram(op)) share_queues(setup, options);
    state_.cq = setup.cq;
    state_.channel = setup.channel;
    state_.queues = queues_;
    state_.lanes = lanes_;
    state_.post_list = op.post_list;
    state_.work = options.work;
    state_.by_memory = options.requests_written();
    state_.lossy = !facts(op.transport).reliable;
    state_.waiting.resize(setup.lanes.size() * slots_);
  }

  template <Node N>
  void step(N& node, const RunControl& control, ThreadTally& tally) {
    state_.watch(node);
    server_loop(node, state_, control, tally, echo_pass<N>);
  }

  bool active() const override { return false; }
  bool counts() const override { return false; }
  std::uint64_t sent_to(std::uint32_t node) const override {
    std::uint64_t total = 0;
    for (std::size_t i = 0; i < lanes_.size(); ++i) {
      if (!lanes_[i].answered.empty()) {
        total += lanes_[i].answered[node];
      } else if (owners_[i] == node) {
        total += lanes_[i].served;
      }
    }
    return total;
  }
  std::uint64_t received() const override { return state_.served; }
  std::uint64_t wrong() const override { return state_.wrong; }
  const BatchCounts& batches() const { return state_.batches; }

 private:
  // Datagrams can go out on any queue of the client's port: the lanes of the port share the first ones evenly.
  void share_queues(const ThreadSetup& setup, const EchoOptions& options) {
    std::vector<std::vector<std::uint32_t>> lanes_of(setup.topology.ports);
    for (std::uint32_t i = 0; i < lanes_.size(); ++i) {
      std::vector<std::uint32_t>& lanes = lanes_of[setup.lanes[i].port];
      lanes.push_back(i);
      lanes_[i].queue = lanes[(lanes.size() - 1) % std::max(1u, options.answer_qps / setup.topology.ports)];
    }
  }

  // Requests that may arrive at once on a lane.
  static std::uint64_t requests_per_lane(const ThreadSetup& setup, const EchoOptions& options) {
    return options.outstanding * (setup.lanes.empty() ? 1 : setup.lanes.front().peers.size());
  }

  static std::uint64_t slots_per_lane(const ThreadSetup& setup, const EchoOptions& options) {
    const std::uint64_t requests = requests_per_lane(setup, options);
    return options.requests_written() ? requests : recvs_for(setup.operation, requests);
  }

  void add_lane(const ThreadSetup& setup, const EchoOptions& options, std::uint32_t index) {
    const Operation& op = setup.operation;
    const Lane& lane = setup.lanes[index];
    const LanePeer& peer = lane.peers.front();
    EchoServerLane mine;
    mine.queue = index;
    if (options.requests_written()) {
      mine.in = slots_of(setup.region, lane, op.payload);
    } else {
      mine.recvs = recvs_->post(lane.qp, index);
      mine.in = slots_of(mine.recvs, op.payload);
    }
    const std::uint32_t lkey = options.requests_written() ? setup.region.lkey : recvs_->lkey();
    mine.responses = messages_.build(index * slots_, slots_, index, mine.in, lkey, peer, options.responses_written());
    const bool companion = options.mode == EchoMode::write_send;
    if (companion) {
      for (ibv_send_wr& response : mine.responses) response.wr.ud = peer.companion.address();
    } else if (!facts(op.transport).connected) {
      addresses_[index].resize(lane.peers.size());
      answered_[index].resize(lane.peers.size());
      for (const LanePeer& client : lane.peers) addresses_[index].at(client.node) = client.qp.address();
      mine.addresses = addresses_[index];
      mine.answered = answered_[index];
    }
    owners_.push_back(peer.node);
    lanes_.push_back(mine);
    queues_.push_back({.qp = companion ? lane.companion : lane.qp,
                       .builder = companion ? lane.companion_builder : lane.builder,
                       .index = index,
                       .depth = op.tx_depth,
                       .signal_every = op.signal_every});
  }

  std::uint64_t slots_;  // of each lane, for requests
  EchoSends messages_;
  std::optional<RecvRings> recvs_;
  std::vector<std::vector<UdAddress>> addresses_;  // UD: by lane, then client
  std::vector<std::vector<std::uint64_t>> answered_;
  std::vector<std::uint32_t> owners_;  // connected: the client of each lane
  std::vector<SendQueue> queues_;
  std::vector<EchoServerLane> lanes_;
  EchoServerState state_;
};

}  // namespace verbscope
