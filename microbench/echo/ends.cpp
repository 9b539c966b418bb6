#include "microbench/echo/ends.hpp"

#include <algorithm>
#include <optional>

#include "machine/memory.hpp"
#include "microbench/bench/workload.hpp"
#include "microbench/echo/client.hpp"
#include "microbench/echo/places.hpp"
#include "microbench/echo/server.hpp"
#include "microbench/loop/payload.hpp"

namespace verbscope {

namespace {

SendQueue empty_queue(ibv_qp* qp, ibv_qp_ex* builder, std::size_t index, const Operation& op) {
  return {.qp = qp,
          .builder = builder,
          .index = static_cast<std::uint32_t>(index),
          .depth = op.tx_depth,
          .signal_every = op.signal_every};
}

EchoSlots slots_of(const LocalRegion& region, const Lane& lane, std::uint32_t payload) {
  return {region.bytes.data() + slice_of(region.bytes.size(), lane.count, lane.index).offset, echo_stride(payload)};
}

void address_datagram(ibv_send_wr& wr, const PeerQp& to) {
  wr.wr.ud = {to.ah, to.qpn, to.qkey};
}

class EchoClient final : public WorkloadOn<EchoClient> {
 public:
  EchoClient(const ThreadSetup& setup, const EchoOptions& options)
      : out_(Bytes(setup.lanes.size() * options.outstanding * echo_stride(setup.operation.payload)), setup.huge_pages),
        mr_(setup.pd, out_.data(), out_.size()),
        messages_(setup, setup.lanes.size() * options.outstanding),
        asked_(setup.lanes.size() * options.outstanding) {
    const Operation& op = setup.operation;
    const bool datagram = !facts(op.transport).connected || options.mode == EchoMode::write_send;
    if (!options.responses_written())
      recvs_.emplace(setup, setup.lanes.size(), echo_recv_shape(op, op.payload, options.outstanding, datagram));
    for (std::uint32_t i = 0; i < setup.lanes.size(); ++i) add_lane(setup, options, i);
    state_.cq = setup.cq;
    state_.channel = setup.channel;
    state_.queues = queues_;
    state_.lanes = lanes_;
    state_.client = setup.node;
    state_.size = op.payload;
    state_.by_memory = options.responses_written();
    state_.validate = op.validate;
    if (!op.reliable()) state_.give_up = options.give_up;
    state_.goal = setup.goal;
  }

  template <Node N>
  void step(N& node, const RunControl& control, ThreadTally& tally) {
    echo_client_loop(node, state_, control, tally);
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
      for (ibv_send_wr& request : mine.requests) address_datagram(request, peer.qp);
    }
    if (options.responses_written()) {
      mine.in = slots_of(setup.region, lane, op.payload);
    } else {
      mine.recvs = recvs_->post(options.mode == EchoMode::write_send ? lane.companion : lane.qp, index);
      mine.in = slots_of(mine.recvs, op.payload);
    }
    lanes_.push_back(mine);
    queues_.push_back(empty_queue(lane.qp, lane.builder, index, op));
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

class EchoServer final : public WorkloadOn<EchoServer> {
 public:
  EchoServer(const ThreadSetup& setup, const EchoOptions& options)
      : places_(places_of(setup, options)),
        messages_(setup, setup.lanes.size() * places_),
        addresses_(setup.lanes.size()),
        answered_(setup.lanes.size()) {
    const Operation& op = setup.operation;
    if (!options.requests_written()) {
      const bool datagram = !facts(op.transport).connected;
      recvs_.emplace(setup, setup.lanes.size(),
                     echo_recv_shape(op, op.payload, requests_under_way(setup, options), datagram));
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
    state_.waiting.resize(setup.lanes.size() * places_);
  }

  template <Node N>
  void step(N& node, const RunControl& control, ThreadTally& tally) {
    echo_server_loop(node, state_, control, tally);
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
  std::uint64_t received() const override {
    std::uint64_t total = 0;
    for (const EchoServerLane& lane : lanes_) total += lane.served;
    return total;
  }
  std::uint64_t wrong() const override { return state_.wrong; }
  const BatchCounts& batches() const { return state_.batches; }

 private:
  // Datagrams can go out on any queue of the client's port: on the first ones, which the lanes of the port share
  // evenly.
  void share_queues(const ThreadSetup& setup, const EchoOptions& options) {
    std::vector<std::vector<std::uint32_t>> lanes_of(setup.topology.ports);
    for (std::uint32_t i = 0; i < lanes_.size(); ++i) {
      std::vector<std::uint32_t>& lanes = lanes_of[setup.lanes[i].port];
      lanes.push_back(i);
      lanes_[i].queue = lanes[(lanes.size() - 1) % std::max(1u, options.answer_qps / setup.topology.ports)];
    }
  }

  // Requests that may come at once on a lane.
  static std::uint64_t requests_under_way(const ThreadSetup& setup, const EchoOptions& options) {
    return options.outstanding * (setup.lanes.empty() ? 1 : setup.lanes.front().peers.size());
  }

  static std::uint64_t places_of(const ThreadSetup& setup, const EchoOptions& options) {
    const std::uint64_t under_way = requests_under_way(setup, options);
    return options.requests_written() ? under_way : echo_recvs(setup.operation, under_way);
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
    mine.responses = messages_.build(index * places_, places_, index, mine.in, lkey, peer, options.responses_written());
    const bool companion = options.mode == EchoMode::write_send;
    if (companion) {
      for (ibv_send_wr& response : mine.responses) address_datagram(response, peer.companion);
    } else if (!facts(op.transport).connected) {
      addresses_[index].resize(lane.peers.size());
      answered_[index].resize(lane.peers.size());
      for (const LanePeer& client : lane.peers) address_datagram(addresses_[index].at(client.node), client.qp);
      mine.addresses = addresses_[index];
      mine.answered = answered_[index];
    }
    owners_.push_back(peer.node);
    lanes_.push_back(mine);
    queues_.push_back(companion ? empty_queue(lane.companion, lane.companion_builder, index, op)
                                : empty_queue(lane.qp, lane.builder, index, op));
  }

  std::uint64_t places_;  // each lane has so many for requests
  EchoSends messages_;
  std::optional<RecvRings> recvs_;
  std::vector<std::vector<ibv_send_wr>> addresses_;  // UD: by lane, then client
  std::vector<std::vector<std::uint64_t>> answered_;
  std::vector<std::uint32_t> owners_;  // connected: the client of each lane
  std::vector<SendQueue> queues_;
  std::vector<EchoServerLane> lanes_;
  EchoServerState state_;
};

}  // namespace

std::uint64_t echo_slice_bytes(const EchoOptions& options, std::uint32_t payload, Side side) {
  const bool written = side == Side::server ? options.requests_written() : options.responses_written();
  return written ? options.outstanding * echo_stride(payload) : 0;
}

std::unique_ptr<Workload> make_echo_client(const ThreadSetup& setup, const EchoOptions& options) {
  return std::make_unique<EchoClient>(setup, options);
}

std::unique_ptr<Workload> make_echo_server(const ThreadSetup& setup, const EchoOptions& options) {
  return std::make_unique<EchoServer>(setup, options);
}

Json echo_results(const std::vector<const Workload*>& threads) {
  Histogram latency;
  BatchCounts batches;
  bool asks = false;
  for (const Workload* thread : threads) {
    if (const auto* client = dynamic_cast<const EchoClient*>(thread)) {
      asks = true;
      latency.merge(client->latency());
    } else if (const auto* server = dynamic_cast<const EchoServer*>(thread)) {
      batches.merge(server->batches());
    }
  }
  if (!asks) return Json{{"answers_per_post", batches.to_json()}};
  Json out{{kPackedLatency, latency.pack()}};
  out.update(latency.to_json());
  return out;
}

}  // namespace verbscope
