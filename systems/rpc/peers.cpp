#include "systems/rpc/peers.hpp"

namespace verbscope {

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

std::vector<PeerQp> client_qps(const ThreadSetup& setup) {
  std::vector<PeerQp> out;
  for (const ClientAddress& client : client_addresses(setup)) out.push_back(client.qp);
  return out;
}

}  // namespace verbscope
