// The RC QPs of a node that librdmacm connects (--rdma_cm): of two nodes the one with the higher number of machine asks
// the other for each QP that they have in common.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "common/json.hpp"
#include "microbench/run/node_device.hpp"
#include "verbs/connection_manager.hpp"

namespace verbscope {

// What a node tells its peers: where it takes requests, by port, and the word that they must bring.
struct CmOffer {
  std::uint64_t token = 0;
  std::vector<std::uint16_t> listening;
};
Json to_json(const CmOffer& offer);
// Throws Error; `where` begins the message.
CmOffer cm_offer_from_json(const Json& json, const std::string& where);

// A QP here, and that of a peer to which it is to be connected.
struct WantedConnection {
  std::size_t qp = 0;      // here
  std::uint32_t qpn = 0;   // its number
  std::uint32_t port = 0;  // index among the ports in use, on both sides
  std::uint32_t node = 0;  // the peer, as Partner::node
  std::uint32_t theirs = 0;
  CmAddress at;  // where the peer takes requests
  std::uint64_t token = 0;
};

class ManagedConnections {
 public:
  // The ports have IP addresses (NodePorts). Throws what ConnectionManager throws. `part` must outlive it.
  ManagedConnections(const NodePart& part, const NodePorts& ports);

  CmOffer offer() const { return {manager_.token(), manager_.listening()}; }
  void add(const WantedConnection& wanted) { wanted_.push_back(wanted); }
  // Connects all that were added; `make_ready` brings QP `qp` to RTS. Throws Error.
  void connect(const CmDepths& depths, const std::function<void(std::size_t qp, const CmConnection&)>& make_ready);

 private:
  bool asks(const WantedConnection& wanted) const {
    return peer_machine(part_.machine(), wanted.node) < part_.machine();
  }
  const WantedConnection& asked_for(const CmRequest& request) const;

  const NodePart& part_;
  ConnectionManager manager_;
  std::vector<WantedConnection> wanted_;
};

}  // namespace verbscope
