// An identifier of the connection manager (struct rdma_cm_id), and a file through which programs use it.
#pragma once

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_cma_abi.h>

#include <cstdint>
#include <optional>

#include "nic_sim/host/event_channel.hpp"
#include "simulate/server/connection_addresses.hpp"

namespace verbscope::simulate {

class Process;

// Reasons of a rejection (enum ib_cm_rej_reason), and states of a datagram's peer (enum ib_cm_sidr_status).
inline constexpr int kRejectTimeout = 4;
inline constexpr int kRejectInvalidService = 8;
inline constexpr int kRejectedByProgram = 28;
inline constexpr int kDatagramAccepted = 0;
inline constexpr int kDatagramUnsupported = 1;
inline constexpr int kDatagramRejected = 2;

// The most private data of a program in each message, in bytes. Requests for IP addresses have less: they begin with
// kAddressHeader bytes of addresses (struct cma_hdr).
inline constexpr std::uint8_t kAddressHeader = 36;
inline constexpr std::uint8_t kRequestData = 92;
inline constexpr std::uint8_t kDatagramRequestData = 216;
inline constexpr std::uint8_t kReplyData = 196;
inline constexpr std::uint8_t kDatagramReplyData = 136;
inline constexpr std::uint8_t kRejectData = 148;

// In the order in which a connection passes through them. From request_sent on the identifier takes part in the
// protocol of InfiniBand's connection manager.
enum class CmState : std::uint8_t {
  idle,
  bound,
  resolving_address,
  address_resolved,
  resolving_route,
  route_resolved,
  listening,
  request_sent,
  request_received,
  reply_sent,
  reply_received,
  established,
  disconnect_sent,
  disconnect_received,
  ended  // refused, unreachable or disconnected; a datagram's peer has been told
};

// An event that waits in a file.
struct CmEvent {
  std::uint32_t id;       // the identifier that counts it as reported
  std::uint32_t request;  // the new identifier of a connection request; else 0
  ucma_abi_event_resp answer;
  std::uint32_t membership = 0;  // the membership that counts it as well; 0: none
};

struct CmFile {
  CmFile(const Process& of, sim::Engine& engine, Picos wakeup) : owner(&of), events(engine, wakeup, false) {}

  const Process* owner;
  bool open = true;
  sim::EventQueue<CmEvent> events;
};

// An identifier's membership in a multicast group.
struct CmMembership {
  std::uint32_t id;
  std::uint64_t uid;  // by which the program knows it
  ibv_gid gid;
  std::uint16_t lid;           // 0 on Ethernet
  std::uint32_t reported = 0;  // events that the program has got
};

struct CmId {
  std::uint32_t number;
  CmFile* file;
  std::uint32_t node;
  std::uint64_t uid;  // by which the program knows it; 0: it does not yet
  std::uint16_t port_space;
  ibv_qp_type qp_type;
  CmState state = CmState::idle;
  std::uint32_t changes = 0;  // of the state
  std::uint64_t timer = 0;    // number of the message that tells that its time has passed; 0: none

  CmAddress from{};  // the own address
  CmAddress to{};
  std::uint16_t service = 0;  // the port space of the own port, by which requests find it
  bool on_device = false;     // it belongs to the node's device
  std::uint32_t peer_node = 0;
  std::uint32_t peer = 0;      // number of the peer's identifier; 0: not known
  std::uint32_t listener = 0;  // number of the identifier that its request came to
  std::uint32_t backlog = 0;   // of a listener: requests that may still wait
  std::uint32_t reported = 0;  // events that the program has got
  Picos held_until{0};         // the peer has said that an answer takes so long

  std::uint32_t psn = 0;  // that the peer begins with
  std::uint32_t peer_psn = 0;
  std::uint32_t qp_num = 0;
  std::uint32_t peer_qp_num = 0;
  std::uint32_t qkey = RDMA_UDP_QKEY;
  std::uint8_t responder_resources = 0;
  std::uint8_t initiator_depth = 0;
  std::uint8_t retry_count = 0;
  std::uint8_t rnr_retry_count = 0;

  // Options.
  std::uint8_t type_of_service = 0;
  std::optional<std::uint8_t> ack_timeout;
  bool reuse_address = false;
  bool own_family_only = false;

  bool datagram() const { return qp_type == IBV_QPT_UD; }
  bool to_group() const { return to.ss_family != 0 && is_multicast(to); }
  std::uint8_t request_data() const {
    const std::uint8_t all = datagram() ? kDatagramRequestData : kRequestData;
    return to.ss_family == AF_IB ? all : static_cast<std::uint8_t>(all - kAddressHeader);
  }
};

}  // namespace verbscope::simulate
