#include "systems/requests/responses.hpp"

#include <algorithm>

#include "systems/requests/peers.hpp"
#include "wire/pcie.hpp"

namespace verbscope {

namespace {

std::uint32_t whole_rounds(const Operation& op) {
  return op.tx_depth / op.signal_every * op.signal_every;
}

std::size_t datagram_lanes(const ThreadSetup& setup) {
  const auto datagram = [](const Lane& lane) { return !facts(lane.transport).connected; };
  return static_cast<std::size_t>(std::ranges::count_if(setup.lanes, datagram));
}

}  // namespace

ResponseQueues::ResponseQueues(const ThreadSetup& setup, const ResponseBodies& bodies)
    : depth_(whole_rounds(setup.operation)),
      shape_(bodies),
      stride_(round_up(bodies.bytes, bodies.inlined ? sizeof(std::uint64_t) : kCacheLine.value)),
      bodies_(Bytes(datagram_lanes(setup) * depth_ * stride_), setup.huge_pages),
      segments_(datagram_lanes(setup) * depth_),
      requests_(segments_.size()) {
  if (!shape_.inlined) mr_.emplace(setup.pd, bodies_.data(), bodies_.size());
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
    ports_.emplace_back(std::span(queues_).subspan(begin, count));
    begin += count;
  }
}

void ResponseQueues::add_queue(const ThreadSetup& setup, std::uint32_t lane) {
  const auto number = static_cast<std::uint32_t>(queues_.size());
  const std::size_t begin = std::size_t{number} * depth_;
  for (std::uint32_t j = 0; j < depth_; ++j) {
    segments_[begin + j] = {reinterpret_cast<std::uint64_t>(bodies_.data() + (begin + j) * stride_), shape_.bytes,
                            mr_ ? mr_->lkey() : 0};
    ibv_send_wr& wr = requests_[begin + j];
    wr.wr_id = send_id(number);
    wr.sg_list = &segments_[begin + j];
    wr.num_sge = 1;
    wr.opcode = IBV_WR_SEND_WITH_IMM;
    wr.send_flags = shape_.inlined ? unsigned{IBV_SEND_INLINE} : 0u;
  }
  queues_.push_back({.qp = setup.lanes[lane].qp,
                     .builder = setup.lanes[lane].builder,
                     .index = lane,
                     .depth = depth_,
                     .signal_every = setup.operation.signal_every,
                     .ring = std::span(requests_).subspan(begin, depth_)});
}

std::vector<ResponseTarget> ResponseQueues::targets(const ThreadSetup& setup) {
  std::vector<ResponseTarget> out;
  for (const ClientAddress& client : client_addresses(setup)) {
    out.push_back({.to = client.qp.address(), .port = &ports_[client.port], .node = client.node});
  }
  return out;
}

}  // namespace verbscope
