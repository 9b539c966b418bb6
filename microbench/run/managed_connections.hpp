// The RC QPs of a node that librdmacm connects (--rdma_cm). Of two nodes, the one with the higher machine number
// requests the connection of each QP.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "common/json.hpp"
#include "microbench/run/node_device.hpp"
#include "verbs/connection_manager.hpp"

namespace verbscope {

// Sent by a node to its peers: the TCP port of librdmacm on each of its ports, and the token that requests must carry.
struct CmOffer {
  std::uint64_t token = 0;
  std::vector<std::uint16_t> listening;
};
Json to_json(const CmOffer& offer);
// Throws Error; `where` begins the message.
CmOffer cm_offer_from_json(const Json& json, const std::string& where);

// A QP of this node and the QP of a peer that it connects to.
struct WantedConnection {
  std::size_t qp = 0;        // here
  std::uint32_t qpn = 0;     // its number
  std::uint32_t port = 0;    // index among the ports in use, on both sides
  std::uint32_t node = 0;    // the peer, as Partner::node
  std::uint32_t theirs = 0;  // the peer's QP, as Partner::qp
  CmAddress at;              // where the peer accepts requests
  std::uint64_t token = 0;
};

class ManagedConnections {
 public:
  // The ports have IP addresses (NodePorts). Throws like ConnectionManager. `part` must outlive it.
  ManagedConnections(const NodePart& part, const NodePorts& ports);

  CmOffer offer() const { return {manager_.token(), manager_.listening()}; }
  void add(const WantedConnection& wanted) { wanted_.push_back(wanted); }
  // Connects all added QPs; `make_ready` changes QP `qp` to RTS. Throws Error.
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
