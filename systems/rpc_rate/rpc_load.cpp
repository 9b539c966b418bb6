#include "systems/rpc_rate/rpc_load.hpp"

#include <algorithm>

namespace verbscope {

std::uint32_t machine_of(const ThreadSetup& setup) {
  return setup.side == Side::server ? 0 : setup.node + 1;
}

std::uint64_t caller_number(const ThreadSetup& setup) {
  const std::uint64_t most = std::max(setup.topology.threads, setup.topology.client_threads);
  return machine_of(setup) * most + setup.thread + 1;
}

RpcRole role_of(const ThreadSetup& setup, const RpcLoad& load) {
  const std::uint32_t machine = machine_of(setup), ports = setup.topology.ports;
  const std::uint32_t threads = load.endpoints_of(setup.topology, machine);
  const auto is_background = [&](std::uint32_t thread) { return load.background_bytes > 0 && thread + 1 == threads; };
  RpcRole role{.background = is_background(setup.thread), .members = 0};
  role.first_machine = role.background ? 1 : 0;
  role.all_serve = load.all_serve || role.background;
  role.calls = role.background ? machine >= role.first_machine : role.all_serve || machine != 0;
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

std::vector<LanePeer> peers_of(const ThreadSetup& setup, const RpcLoad& load, const RpcRole& role) {
  const std::uint32_t machine = machine_of(setup);
  std::vector<LanePeer> peers;
  for (const LanePeer& peer : setup.lanes.front().peers) {
    const std::uint32_t theirs = peer_machine(machine, peer.node);
    const std::uint32_t threads = load.endpoints_of(setup.topology, theirs);
    if (peer.index >= threads) continue;  // a worker
    const bool background = load.background_bytes > 0 && peer.index + 1 == threads;
    const bool has_role = theirs >= role.first_machine && machine >= role.first_machine;
    if (has_role && background == role.background) peers.push_back(peer);
  }
  return peers;
}

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

}  // namespace verbscope
