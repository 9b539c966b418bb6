// Connects RC QPs by the kernel's connection manager (librdmacm), as `rdma_connect` and `rdma_accept` do: nodes find
// each other by the IP addresses of their ports and exchange QP numbers, first PSNs and the path. The caller creates
// the QPs and moves them to RTR and RTS.
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

// A port of this node's device. `gid` is its IP address.
struct CmPort {
  std::string device;
  std::uint8_t number = 1;
  ibv_gid gid{};
  int gid_index = 0;
};

// The address of a listening node: IP address, as a GID, and port in librdmacm's port space.
struct CmAddress {
  ibv_gid gid{};
  std::uint16_t port = 0;
};

// Sent with a request: the requesting node, which of the peer's QPs it asks for, and the peer's token.
struct CmRequest {
  std::uint64_t token = 0;
  std::uint32_t node = 0;
  std::uint32_t qp = 0;
};

// Outstanding READs and atomics: those that a QP may send, and those that it accepts.
struct CmDepths {
  std::uint8_t initiator = 1;
  std::uint8_t responder = 1;
};

// The agreed parameters, for QpReceive and QpSend.
struct CmConnection {
  PathAddress path;
  ibv_mtu mtu = IBV_MTU_1024;
  std::uint32_t peer_qpn = 0;
  std::uint32_t peer_psn = 0;
  std::uint32_t psn = 0;
};

class ConnectionManager {
 public:
  // Listens on each of the ports. Their GIDs must be IP addresses that peers can reach. Throws Error, also without
  // librdmacm (module rdma_ucm). `timeout`: for each wait.
  ConnectionManager(const std::vector<CmPort>& ports, Picos timeout);
  ConnectionManager(const ConnectionManager&) = delete;
  ConnectionManager& operator=(const ConnectionManager&) = delete;

  // The ports it listens on, one per entry of `ports`.
  std::vector<std::uint16_t> listening() const;
  // A random number that requests must contain. It is different in each run.
  std::uint64_t token() const { return token_; }

  // Connects QP `qpn` of a local port to the node at `to`. `make_ready` must move the QP to RTS. Throws Error.
  void connect(std::size_t port, const CmAddress& to, const CmRequest& request, std::uint32_t qpn,
               const CmDepths& depths, const std::function<void(const CmConnection&)>& make_ready);

  // Accepts requests until `count` are established. `make_ready` must move the requested QP to RTS and return its
  // number. Rejects requests without the token. Throws Error.
  void accept(std::size_t count, const CmDepths& depths,
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
    rdma_cm_id* id;     // a new one if the event is a request
    CmRequest request;  // sent with the event; zeros if none
  };

  static Channel open_channel();
  static Id make_id(const Channel& channel);
  Event next_event(const Channel& channel, const std::string& what) const;
  void expect(const Channel& channel, rdma_cm_event_type type, const std::string& what) const;
  CmConnection read_connection(rdma_cm_id* id, const CmPort& port) const;
  // The local port of a connection. Throws Error if it is not one of `ports_`.
  const CmPort& port_of(const rdma_cm_id* id) const;

  std::vector<CmPort> ports_;
  Picos timeout_;
  std::uint64_t token_;
  // Later members depend on earlier ones and are destroyed first.
  Channel client_channel_, server_channel_;
  std::vector<Id> listeners_;
  std::list<Id> connections_;
};

}  // namespace verbscope
