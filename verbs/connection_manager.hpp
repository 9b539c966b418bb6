// Connections of RC QPs by the kernel's connection manager (librdmacm), as `rdma_connect` and `rdma_accept` make them:
// the nodes find each other by the IP addresses of their ports, and learn QP numbers, first PSNs and the path from it.
// The QPs are the caller's own, who brings them to RTR and RTS with what it learnt.
#pragma once

#include <rdma/rdma_cma.h>

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "common/units.hpp"
#include "verbs/resources.hpp"

namespace verbscope {

// A port of this node's device, and the GID that is its IP address.
struct CmPort {
  std::string device;
  std::uint8_t number = 1;
  ibv_gid gid{};
  int gid_index = 0;
};

// Where a node takes requests: the IP address, as a GID, and the port of librdmacm's port space.
struct CmAddress {
  ibv_gid gid{};
  std::uint16_t port = 0;
};

// What goes with a request: which node asks for which of the other's QPs, and the word that shows that it was invited.
struct CmRequest {
  std::uint64_t token = 0;
  std::uint32_t node = 0;
  std::uint32_t qp = 0;
};

// READs and atomics that a QP may have outstanding, and takes.
struct CmDepths {
  std::uint8_t initiator = 1;
  std::uint8_t responder = 1;
};

// What both sides agreed on, for QpReceive and QpSend.
struct CmConnection {
  PathAddress path;
  ibv_mtu mtu = IBV_MTU_1024;
  std::uint32_t peer_qpn = 0;
  std::uint32_t peer_psn = 0;
  std::uint32_t psn = 0;
};

class ConnectionManager {
 public:
  // Listens on each of the ports, whose GIDs are IP addresses that peers can reach. Throws Error, also where there is
  // no librdmacm (module rdma_ucm). No wait takes longer than `timeout`.
  ConnectionManager(const std::vector<CmPort>& ports, Picos timeout);
  ConnectionManager(const ConnectionManager&) = delete;
  ConnectionManager& operator=(const ConnectionManager&) = delete;

  // By port: where it listens.
  std::vector<std::uint16_t> listening() const;
  // The word that requests must bring; another in each run.
  std::uint64_t token() const { return token_; }

  // Asks the node at `to` for a connection of QP `qpn` of a port here; `make_ready` brings the QP to RTS. Throws Error.
  void ask(std::size_t port, const CmAddress& to, const CmRequest& request, std::uint32_t qpn, const CmDepths& depths,
           const std::function<void(const CmConnection&)>& make_ready);

  // Takes requests of peers until `count` of them are established: `make_ready` brings the QP that one asks for to RTS
  // and yields its number. Requests without the token are refused. Throws Error.
  void take(std::size_t count, const CmDepths& depths,
            const std::function<std::uint32_t(const CmRequest&, const CmConnection&)>& make_ready);

 private:
  template <auto kDestroy>
  struct Destroyer {
    template <class T>
    void operator()(T* it) const {
      kDestroy(it);
    }
  };
  using Channel = std::unique_ptr<rdma_event_channel, Destroyer<rdma_destroy_event_channel>>;
  using Id = std::unique_ptr<rdma_cm_id, Destroyer<rdma_destroy_id>>;
  struct Event {
    rdma_cm_event_type type;
    int status;
    rdma_cm_id* id;     // of a request: a new one
    CmRequest request;  // that came with it; zeros for none
  };

  static Channel open_channel();
  static Id make_id(const Channel& channel);
  Event next_event(const Channel& channel, const std::string& what) const;
  void expect(const Channel& channel, rdma_cm_event_type type, const std::string& what) const;
  CmConnection learn(rdma_cm_id* id, const CmPort& port) const;
  // The port of this node that a connection goes by. Throws Error when it is none of them.
  const CmPort& port_of(const rdma_cm_id* id) const;

  std::vector<CmPort> ports_;
  Picos timeout_;
  std::uint64_t token_;
  // In the order of dependence: destroyed from the last.
  Channel asking_, taking_;
  std::vector<Id> listeners_;
  std::list<Id> connections_;
};

}  // namespace verbscope
