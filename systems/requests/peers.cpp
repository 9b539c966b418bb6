#include "systems/requests/peers.hpp"

#include <algorithm>
#include <bit>

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

QpIndex::QpIndex(const std::vector<PeerQp>& peers)
    : by_lid_(std::ranges::any_of(peers, [](const PeerQp& peer) { return peer.lid != 0; })),
      mask_(std::bit_ceil(4 * peers.size() + 1) - 1),
      entries_(mask_ + 1) {
  for (std::uint32_t i = 0; i < peers.size(); ++i) {
    const std::uint64_t wanted = key(peers[i].qpn, by_lid_ ? peers[i].lid : std::uint16_t{0});
    std::uint64_t at = place(wanted);
    for (; entries_[at].peer != kNotFound; at = (at + 1) & mask_) {
      if (entries_[at].key == wanted) {
        fail(
            "peers {} and {} have the same QP number 0x{:x} and the same LID or none, so their datagrams cannot be "
            "told apart",
            entries_[at].peer, i, peers[i].qpn);
      }
    }
    entries_[at] = {wanted, i};
  }
}

}  // namespace verbscope
