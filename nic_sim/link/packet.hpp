// Packets between NICs: their contents, sequence numbers and sizes on the wire.
#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "common/units.hpp"
#include "nic_sim/profile/profile.hpp"
#include "wire/packet.hpp"
#include "wire/wqe.hpp"

namespace verbscope::sim {

// The number of a packet in PacketMemory. Its high bits are the packet's pool (PacketMemory::pool_of).
using PacketId = std::uint32_t;
inline constexpr PacketId kNoPacket = ~PacketId{0};

// The header that carries the global addresses of a packet: InfiniBand's and RoCE v1's GRH, with link-local or (RoCE
// v1) IPv4-mapped GIDs; RoCE v2's IP and UDP headers. InfiniBand needs none inside a subnet.
enum class GlobalHeader : std::uint8_t { none, grh, grh_ipv4, ipv6, ipv4 };

// A multicast group of datagrams: its GID, in network byte order, and its LID (0 on Ethernet, which has none).
struct MulticastGroup {
  std::uint64_t subnet_prefix = 0;
  std::uint64_t interface_id = 0;
  std::uint32_t lid = 0;

  auto operator<=>(const MulticastGroup&) const = default;
};

// The target node of a packet to a multicast group until the first switch copies it for each node.
inline constexpr std::uint32_t kEveryNode = ~std::uint32_t{0};
// The target QP of these packets, as IB_MULTICAST_QPN of the kernel (include/rdma/ib_verbs.h).
inline constexpr std::uint32_t kMulticastQp = 0xffffff;

// What the last packet of a message carries behind its headers: immediate data, or a key that the receiver invalidates.
enum class Carried : std::uint8_t { nothing, immediate, key };

struct alignas(64) Packet {
  enum class Kind : std::uint8_t {
    request,
    ack,
    nak_sequence,
    nak_receiver_not_ready,
    nak_invalid,
    nak_access,
    nak_operation,
    read_response,
    atomic_response,
    congestion_notification  // a CNP: switches have marked packets of the opposite flow
  };

  PacketId id = kNoPacket;
  PacketId next = kNoPacket;  // in the queue that holds it
  Kind kind = Kind::request;
  Verb verb = Verb::send;  // of a request
  Transport transport = Transport::rc;
  bool first = true;  // the first packet of its message
  bool last = true;
  Carried carried = Carried::nothing;  // in `immediate`
  GlobalHeader global = GlobalHeader::none;
  bool solicited = false;
  bool freed_by_writer = false;  // PayloadWriter frees it when its payload has been written
  bool counted = false;          // response: ends one of the responder's reads; request: ends a message, sent first
  bool completes = false;        // when it leaves the port, its signaled work request completes
  std::uint8_t port = 0;         // index from 0; the same on both sides
  std::uint8_t priority = 0;     // on Ethernet
  bool marked = false;           // a switch has marked it for congestion (ECN)
  std::uint32_t source_node = 0;
  std::uint32_t target_node = 0;
  std::uint32_t source_qp = 0;
  std::uint32_t target_qp = 0;
  std::uint32_t sequence = 0;  // PSN, not wrapped to 24 bits
  std::uint32_t immediate = 0;
  std::uint32_t qkey = 0;        // of a datagram; of an XRC request, the number of the shared queue
  std::uint32_t payload = 0;     // bytes
  std::uint32_t wire_bytes = 0;  // payload, padding, headers and CRCs
  std::uint32_t reads_left = 0;  // outstanding DMA reads of its payload in the sending NIC
  std::uint32_t offset = 0;      // of the payload in the message
  std::uint32_t ingress = 0;     // port of the next switch
  std::uint64_t cookie = 0;      // private to the sending NIC
  // WRITE, READ and atomics have a RETH or an AtomicETH. The simulator repeats them in each packet of a WRITE. A
  // datagram to a multicast group has the group in `operand`, `compare` and `rkey` (multicast_group).
  std::uint64_t remote_address = 0;  // of the whole message
  std::uint32_t rkey = 0;
  std::uint32_t length = 0;   // bytes of the whole message
  std::uint64_t operand = 0;  // of an atomic: the addend or the new value
  std::uint64_t compare = 0;

  bool has_immediate() const { return carried == Carried::immediate; }

  // `payload` bytes.
  std::byte* data() { return payload <= kOwnBytes ? own_ : reinterpret_cast<std::byte*>(this) + large_; }
  const std::byte* data() const { return const_cast<Packet*>(this)->data(); }

  // Copies everything but the place in memory. Precondition: room for as much payload.
  void copy_contents(const Packet& packet) {
    const PacketId own_id = id;
    const std::uint32_t own_large = large_;
    *this = packet;
    id = own_id;
    large_ = own_large;
    if (payload > kOwnBytes) std::memcpy(data(), packet.data(), payload);
  }

 private:
  friend class PacketMemory;
  static constexpr std::size_t kOwnBytes = 192;
  std::uint32_t large_ = 0;  // distance from the packet to its room for a large payload, bytes
  alignas(64) std::byte own_[kOwnBytes];
};

static_assert(sizeof(Packet) == 2 * 64 + 192, "two cache lines in front of the bytes of its own");

// True for ACKs, NAKs and responses (is_answer); for responses, which carry data (is_response).
inline bool is_answer(const Packet& packet) {
  return packet.kind != Packet::Kind::request;
}
inline bool is_response(const Packet& packet) {
  return packet.kind == Packet::Kind::read_response || packet.kind == Packet::Kind::atomic_response;
}

// The group of a datagram; for one to a single QP, a group without GID.
inline MulticastGroup multicast_group(const Packet& packet) {
  return {.subnet_prefix = packet.operand, .interface_id = packet.compare, .lid = packet.rkey};
}
inline bool is_multicast(const Packet& packet) {
  return packet.transport == Transport::ud && (packet.operand | packet.compare) != 0;
}

// Conversions between a packet and the argument of an event.
inline Packet& as_packet(std::uint64_t argument) {
  return *reinterpret_cast<Packet*>(argument);
}
inline std::uint64_t as_argument(Packet& packet) {
  return reinterpret_cast<std::uint64_t>(&packet);
}

// True if sequence number `a` is before `b`. Numbers wrap. The simulator uses 32 bits instead of 24: only their order
// matters.
constexpr bool sequence_before(std::uint32_t a, std::uint32_t b) {
  return static_cast<std::int32_t>(a - b) < 0;
}

// The size of a packet on the wire, header by header, with the gap after it.
class Framing {
 public:
  explicit Framing(const Profile& profile) : facts_(&facts(profile.wire.link_type)), gap_(profile.fabric.packet_gap) {
    // The overhead of Ethernet contains the headers of RoCE v2 over IPv4.
    const Bytes contained = ethernet() ? kIpv4Header + kUdpHeader : Bytes(0);
    for (GlobalHeader header : {GlobalHeader::grh, GlobalHeader::grh_ipv4}) more(header) = kGrh - contained;
    if (ethernet()) more(GlobalHeader::ipv6) = kIpv6Header + kUdpHeader - contained;
  }

  bool ethernet() const { return facts_->ethernet; }

  // `extensions`: transport headers after the BTH.
  std::uint32_t bytes(std::uint32_t payload, Bytes extensions, GlobalHeader global) const {
    const Bytes bytes = facts_->overhead + extensions + Bytes(round_up(payload, kPayloadPad.value)) +
                        more_[static_cast<std::size_t>(global)];
    return static_cast<std::uint32_t>((std::max(bytes, facts_->min_frame) + gap_).value);
  }

 private:
  Bytes& more(GlobalHeader header) { return more_[static_cast<std::size_t>(header)]; }

  const LinkFacts* facts_;
  Bytes gap_;
  std::array<Bytes, 5> more_{};  // by global header: bytes besides the overhead of the link
};

}  // namespace verbscope::sim
