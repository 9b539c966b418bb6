#include "systems/rpc_rate/rpc_thread.hpp"

#include <algorithm>

#include "common/error.hpp"
#include "verbs/port_speed.hpp"

namespace verbscope {

namespace {

std::uint32_t machine_of(const ThreadSetup& setup) {
  return setup.side == Side::server ? 0 : setup.node + 1;
}

// Threads of each machine that use the port of this one.
std::uint32_t threads_of_port(const ThreadSetup& setup) {
  const std::uint32_t ports = setup.topology.ports;
  return (setup.topology.threads - setup.thread % ports + ports - 1) / ports;
}

// The place of this thread's QP among the peers of the QPs of machine `machine` (Topology::any_thread).
std::uint16_t place_at(const ThreadSetup& setup, std::uint32_t machine) {
  return static_cast<std::uint16_t>(peer_number(machine, machine_of(setup)) * threads_of_port(setup) +
                                    setup.thread / setup.topology.ports);
}

RpcOptions complete(RpcOptions options, const ThreadSetup& setup) {
  options.recvs = setup.operation.rx_depth / DatagramTransport::kRecvList * DatagramTransport::kRecvList;
  options.timely.link = port_rate(setup.device.port_attributes());
  if (options.control != RpcControl::none && !(options.timely.link.value > 0)) {
    fail_usage("--cc timely: {} does not state the speed of its port", setup.device.name());
  }
  return options;
}

}  // namespace

RpcThread::RpcThread(const ThreadSetup& setup, const RpcLoad& load, const RpcOptions& options)
    : load_(load),
      options_(complete(options, setup)),
      request_bytes_(setup.operation.payload),
      goal_(setup.goal),
      caller_(machine_of(setup) * std::uint64_t{setup.topology.threads} + setup.thread + 1),
      calls_(load.all_serve || machine_of(setup) != 0),
      transport_(setup, load.packet_bytes, options_.recvs),
      pool_({load.packet_bytes - kPacketHeaderBytes}, &setup.pd, setup.huge_pages),
      endpoint_(transport_, pool_, options_),
      turn_(1, true, 0, 0) {
  options_.round_trips = &round_trips_;
  endpoint_.serve(0, &on_request, this);
  open_sessions(setup);
  if (!calls_) return;
  turn_ = Choice(sessions_.size(), true, setup.operation.seed * 1'000'003 + caller_, 0);
  const std::uint32_t batches = load_.outstanding / load_.batch;
  for (std::uint32_t i = 0; i < batches * load_.batch; ++i) {
    calls_table_.push_back({.request = pool_.allocate(request_bytes_),
                            .response = pool_.allocate(load_.response_bytes),
                            .batch = i / load_.batch});
  }
  left_.resize(batches);
  for (std::uint32_t batch = batches; batch-- > 0;) ready_.push_back(batch);
}

// With all_serve, session p calls peer p and session `peers` + p serves it. Otherwise the machines that call have a
// session for each thread of machine 0, which serves peer p in session p.
void RpcThread::open_sessions(const ThreadSetup& setup) {
  const std::uint32_t machine = machine_of(setup);
  const std::vector<LanePeer>& peers = setup.lanes.front().peers;
  const auto all = static_cast<std::uint16_t>(peers.size());
  for (const LanePeer& peer : peers) {
    const std::uint32_t theirs = peer_machine(machine, peer.node);
    if (!load_.all_serve && (!calls_ || theirs != 0)) continue;
    const auto remote = static_cast<std::uint16_t>((load_.all_serve ? all : 0) + place_at(setup, theirs));
    sessions_.push_back(endpoint_.open_client(peer.qp.address(), remote));
  }
  for (const LanePeer& peer : peers) {
    if (!load_.all_serve && calls_) break;
    const auto own = static_cast<std::uint16_t>(setup.thread / setup.topology.ports);
    const std::uint32_t theirs = peer_machine(machine, peer.node);
    endpoint_.open_server(peer.qp.address(), load_.all_serve ? place_at(setup, theirs) : own);
  }
  last_handled_.resize((sessions_.size() + peers.size()) * kSessionSlots);
}

}  // namespace verbscope
