#include "systems/answers/ports.hpp"

#include "microbench/loop/recv_loop.hpp"

namespace verbscope {

namespace {

constexpr std::uint32_t kBody = 8;  // bytes of a value

std::uint32_t whole_rounds(const Operation& op) {
  return op.tx_depth / op.signal_every * op.signal_every;
}

}  // namespace

AnswerPorts::AnswerPorts(const ThreadSetup& setup)
    : depth_(whole_rounds(setup.operation)),
      bodies_(setup.lanes.size() * depth_),
      segments_(bodies_.size()),
      requests_(bodies_.size()) {
  std::vector<std::size_t> counts;
  for (std::uint32_t port = 0; port < setup.topology.ports; ++port) {
    const std::size_t before = queues_.size();
    for (std::uint32_t i = 0; i < setup.lanes.size(); ++i) {
      if (!facts(setup.lanes[i].transport).connected && setup.lanes[i].port == port) add_queue(setup, i);
    }
    counts.push_back(queues_.size() - before);
  }
  std::size_t begin = 0;
  for (const std::size_t count : counts) {
    ports_.push_back({.queues = std::span(queues_).subspan(begin, count)});
    begin += count;
  }
}

void AnswerPorts::add_queue(const ThreadSetup& setup, std::uint32_t lane) {
  const auto number = static_cast<std::uint32_t>(queues_.size());
  const std::size_t begin = std::size_t{number} * depth_;
  for (std::uint32_t j = 0; j < depth_; ++j) {
    segments_[begin + j] = {reinterpret_cast<std::uint64_t>(&bodies_[begin + j]), kBody, 0};
    ibv_send_wr& wr = requests_[begin + j];
    wr.wr_id = send_id(number);
    wr.sg_list = &segments_[begin + j];
    wr.num_sge = 1;
    wr.opcode = IBV_WR_SEND_WITH_IMM;
    wr.send_flags = IBV_SEND_INLINE;
  }
  queues_.push_back({.lane = client_queue(setup.lanes[lane], depth_, setup.operation.signal_every),
                     .requests = std::span(requests_).subspan(begin, depth_),
                     .index = lane});
}

std::vector<ClientAddress> client_addresses(const ThreadSetup& setup) {
  const Topology& topology = setup.topology;
  std::vector<ClientAddress> out(topology.all_client_threads());
  for (const Lane& lane : setup.lanes) {
    if (facts(lane.transport).connected) continue;
    for (const LanePeer& peer : lane.peers) {
      const std::uint32_t thread = peer.index % topology.client_threads;
      out[peer.node * topology.client_threads + thread] = {peer.qp, lane.port, peer.node};
    }
  }
  return out;
}

AnswerRecvs::AnswerRecvs(const ThreadSetup& setup, std::uint32_t lane, std::uint32_t count)
    : lane_(lane),
      buffer_(Bytes(count * kStride), setup.huge_pages),
      mr_(setup.pd, buffer_.data(), buffer_.size()),
      segments_(count),
      requests_(count) {
  for (std::uint32_t j = 0; j < count; ++j) {
    segments_[j] = {reinterpret_cast<std::uint64_t>(body(j)) - kGrh.value,
                    static_cast<std::uint32_t>(kGrh.value) + kBody, mr_.lkey()};
    requests_[j].wr_id = recv_id(lane, j);
    requests_[j].sg_list = &segments_[j];
    requests_[j].num_sge = 1;
  }
}

}  // namespace verbscope
