#include "systems/rpc_rate/rpc_thread.hpp"

#include <algorithm>

#include "common/error.hpp"

namespace verbscope {

namespace {

std::uint32_t machine_of(const ThreadSetup& setup) {
  return setup.side == Side::server ? 0 : setup.node + 1;
}

RpcRole role_of(const ThreadSetup& setup, const RpcLoad& load) {
  const std::uint32_t ports = setup.topology.ports, threads = setup.topology.threads - load.worker_queues.workers;
  const auto is_background = [&](std::uint32_t thread) { return load.background_bytes > 0 && thread + 1 == threads; };
  RpcRole role{.background = is_background(setup.thread), .members = 0};
  role.first_machine = role.background ? 1 : 0;
  role.all_serve = load.all_serve || role.background;
  for (std::uint32_t thread = setup.thread % ports; thread < threads; thread += ports) {
    if (is_background(thread) != role.background) continue;
    if (thread < setup.thread) ++role.rank;
    ++role.members;
  }
  return role;
}

RpcLoad load_of(const ThreadSetup& setup, RpcLoad load) {
  load.request_bytes = setup.operation.payload;
  if (!role_of(setup, load).background) return load;
  load.request_bytes = load.response_bytes = load.background_bytes;
  load.batch = load.outstanding = 1;
  return load;
}

bool calls(const ThreadSetup& setup, const RpcRole& role) {
  const std::uint32_t machine = machine_of(setup);
  return role.background ? machine >= role.first_machine : role.all_serve || machine != 0;
}

// The place of this thread among the peers of its role of a thread of machine `machine`, in the order of machines.
std::uint16_t place_at(const ThreadSetup& setup, const RpcRole& role, std::uint32_t machine) {
  const std::uint32_t before = peer_number(machine, machine_of(setup)) - role.first_machine;
  return static_cast<std::uint16_t>(before * role.members + role.rank);
}

// Whole lists.
std::uint32_t recvs_of(const ThreadSetup& setup) {
  const std::uint32_t list = DatagramTransport::recv_list(setup.operation);
  return setup.operation.rx_depth / list * list;
}

RpcOptions complete(RpcOptions options, const ThreadSetup& setup, const RpcLoad& load, Histogram& round_trips) {
  options.round_trips = &round_trips;
  options.recvs = recvs_of(setup) - unposted_recvs(setup.operation);
  // On the null device round trips say nothing about a network.
  if (load.played > 0) options.timely.low = Picos::max();
  return for_port_of(setup.device, options);
}

}  // namespace

template <class Endpoint>
RpcThreadOn<Endpoint>::RpcThreadOn(const ThreadSetup& setup, const RpcLoad& load, const RpcOptions& options)
    : load_(load_of(setup, load)),
      options_(complete(options, setup, load, round_trips_)),
      role_(role_of(setup, load)),
      goal_(setup.goal),
      caller_(machine_of(setup) * std::uint64_t{setup.topology.threads} + setup.thread + 1),
      calls_(calls(setup, role_)),
      played_(load.played == 0 ? std::nullopt
                               : std::optional<PlayedPeers>(std::in_place, setup.lanes.front().qp, load_.request_bytes,
                                                            load.response_bytes, load.batch)),
      transport_(setup, load.packet_bytes, recvs_of(setup)),
      pool_({load.packet_bytes - kPacketHeaderBytes}, &setup.pd, setup.huge_pages),
      endpoint_(transport_, pool_, options_),
      turn_(1, true, 0, 0),
      endpoint_number_(setup.thread),
      worker_turn_(std::max(load.worker_queues.workers, 1u), true, caller_, 0) {
  endpoint_.serve(kUsualRequest, &on_request, this);
  if (load.slow_percent > 0) serve_slow_requests(setup);
  open_sessions(setup);
  if (calls_) make_calls(setup);
}

template <class Endpoint>
void RpcThreadOn<Endpoint>::serve_slow_requests(const ThreadSetup& setup) {
  const bool by_workers = load_.worker_queues.workers > 0;
  if (by_workers) workers_.emplace(setup.region.bytes.data(), load_.worker_queues);
  endpoint_.serve(kSlowRequest, &on_slow_request, this,
                  by_workers ? RequestLife::until_response : RequestLife::until_return);
}

template <class Endpoint>
void RpcThreadOn<Endpoint>::make_calls(const ThreadSetup& setup) {
  turn_ = Choice(sessions_.size(), true, setup.operation.seed * 1'000'003 + caller_, 0);
  const std::uint32_t batches = load_.outstanding / load_.batch;
  for (std::uint32_t i = 0; i < batches * load_.batch; ++i) {
    calls_table_.push_back({.request = pool_.allocate(load_.request_bytes),
                            .response = pool_.allocate(load_.response_bytes),
                            .batch = i / load_.batch});
  }
  left_.resize(batches);
  for (std::uint32_t batch = batches; batch-- > 0;) ready_.push_back(batch);
}

// If all threads of a role serve, session p calls peer p and session `peers` + p serves it. Otherwise the machines that
// call have a session for each thread of machine 0, which serves peer p in session p.
template <class Endpoint>
void RpcThreadOn<Endpoint>::open_sessions(const ThreadSetup& setup) {
  if (played_) return open_played(setup.lanes.front().peers.front().qp.address());
  const std::uint32_t machine = machine_of(setup), threads = setup.topology.threads - load_.worker_queues.workers;
  std::vector<LanePeer> peers;
  for (const LanePeer& peer : setup.lanes.front().peers) {
    if (peer.index >= threads) continue;  // a worker
    const bool background = load_.background_bytes > 0 && peer.index + 1 == threads;
    const bool has_role = peer_machine(machine, peer.node) >= role_.first_machine && machine >= role_.first_machine;
    if (has_role && background == role_.background) peers.push_back(peer);
  }
  const auto all = static_cast<std::uint16_t>(peers.size());
  for (const LanePeer& peer : peers) {
    const std::uint32_t theirs = peer_machine(machine, peer.node);
    if (!role_.all_serve && (!calls_ || theirs != 0)) continue;
    const auto remote = static_cast<std::uint16_t>((role_.all_serve ? all : 0) + place_at(setup, role_, theirs));
    sessions_.push_back(endpoint_.open_client(peer.qp.address(), remote));
  }
  const bool serves = role_.all_serve || !calls_;
  for (const LanePeer& peer : peers) {
    if (!serves) break;
    const std::uint32_t theirs = peer_machine(machine, peer.node);
    const auto remote = role_.all_serve ? place_at(setup, role_, theirs) : static_cast<std::uint16_t>(role_.rank);
    endpoint_.open_server(peer.qp.address(), remote);
  }
  last_handled_.resize((sessions_.size() + (serves ? peers.size() : 0)) * kSessionSlots);
}

// Both ends of a session have the same number.
template <class Endpoint>
void RpcThreadOn<Endpoint>::open_played(const UdAddress& to) {
  std::uint16_t number = 0;
  for (std::uint32_t i = 0; calls_ && i < load_.played; ++i) sessions_.push_back(endpoint_.open_client(to, number++));
  for (std::uint32_t i = 0; load_.serves && i < load_.played; ++i) {
    played_->call_in(endpoint_.open_server(to, number++));
  }
  last_handled_.resize(number * kSessionSlots);
}

template class RpcThreadOn<RpcEndpoint<DatagramTransport>>;
template class RpcThreadOn<FasstEndpoint<DatagramTransport>>;

}  // namespace verbscope
