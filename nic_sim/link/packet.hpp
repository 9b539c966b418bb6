// Packets travel between NICs, and hold the bytes meanwhile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "common/units.hpp"
#include "wire/wqe.hpp"

namespace verbscope::sim {

// A packet's place in the memory of all (PacketMemory). Packets name one another by it and hold no pointer, so that
// processes can share that memory, each at an address of its own.
using PacketId = std::uint32_t;
inline constexpr PacketId kNoPacket = ~PacketId{0};

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
    congestion_notification  // a CNP: packets of the flow that goes back were marked
  };

  PacketId id = kNoPacket;
  PacketId next = kNoPacket;  // in whichever queue holds it
  Kind kind = Kind::request;
  Verb verb = Verb::send;  // what a request asks for
  Transport transport = Transport::rc;
  bool first = true;  // the first packet of its message
  bool last = true;
  bool has_immediate = false;
  bool has_grh = false;
  bool solicited = false;
  bool kept = false;          // its payload is on its way to memory: given back when it is there
  bool counted = false;       // a response that ends one of the responder's reads; a request that ends a new message
  bool completes = false;     // its work request is done, and signaled, when it has left the port
  std::uint8_t port = 0;      // index from 0; the same on both sides
  std::uint8_t priority = 0;  // on Ethernet
  bool marked = false;        // a switch has marked it for congestion (ECN)
  std::uint32_t source_node = 0;
  std::uint32_t target_node = 0;
  std::uint32_t source_qp = 0;
  std::uint32_t target_qp = 0;
  std::uint32_t sequence = 0;  // PSN, not wrapped to 24 bits
  std::uint32_t immediate = 0;
  std::uint32_t qkey = 0;
  std::uint32_t payload = 0;     // bytes
  std::uint32_t wire_bytes = 0;  // payload, padding, headers and CRCs
  std::uint32_t reads_left = 0;  // payload reads of the sender's NIC that are not back
  std::uint32_t offset = 0;      // where the payload stands in its message
  std::uint32_t ingress = 0;     // the port of the switch that it comes to
  std::uint64_t cookie = 0;      // the sending NIC's own
  // WRITE, READ and atomics have a RETH or an AtomicETH. The simulator repeats them in each packet of a WRITE.
  std::uint64_t remote_address = 0;  // where the whole message begins
  std::uint32_t rkey = 0;
  std::uint32_t length = 0;   // bytes of the whole message
  std::uint64_t operand = 0;  // what is added or swapped in; in an atomic response, what was there before
  std::uint64_t compare = 0;

  // `payload` bytes.
  std::byte* data() { return payload <= kOwnBytes ? own_ : reinterpret_cast<std::byte*>(this) + large_; }
  const std::byte* data() const { return const_cast<Packet*>(this)->data(); }

 private:
  friend class PacketMemory;
  static constexpr std::size_t kOwnBytes = 192;
  std::uint32_t large_ = 0;  // how far behind the packet there is room for a large payload
  alignas(64) std::byte own_[kOwnBytes];
};

static_assert(sizeof(Packet) == 2 * 64 + 192, "two cache lines in front of the bytes of its own");

// Whether it answers a request of the node that gets it; and with data, not only by an acknowledgement of either kind.
inline bool is_answer(const Packet& packet) {
  return packet.kind != Packet::Kind::request;
}
inline bool is_response(const Packet& packet) {
  return packet.kind == Packet::Kind::read_response || packet.kind == Packet::Kind::atomic_response;
}

// Events carry a packet as their argument.
inline Packet& as_packet(std::uint64_t argument) {
  return *reinterpret_cast<Packet*>(argument);
}
inline std::uint64_t as_argument(Packet& packet) {
  return reinterpret_cast<std::uint64_t>(&packet);
}

// Where the packets of all pools of a cluster are.
class PacketMemory {
 public:
  static constexpr std::size_t kMostPools = 256;

  PacketMemory(Bytes mtu, std::size_t pools) : mtu_(mtu.value), blocks_(pools << kBlockBits) {}

  Packet& at(PacketId id) const { return block(id)[id & (kBlock - 1)]; }
  static std::size_t pool_of(PacketId id) { return id >> (kPlaceBits + kBlockBits); }
  // Bytes that a packet can take.
  std::size_t most_bytes() const { return sizeof(Packet) + mtu_; }

  // The packet `number` of a pool, which had one fewer. Others may look packets up meanwhile. Throws Error where a pool
  // may have no more, and std::bad_alloc.
  Packet& add(std::size_t pool, std::size_t number);

 private:
  static constexpr unsigned kPlaceBits = 12, kBlockBits = 12;
  static constexpr std::size_t kBlock = std::size_t{1} << kPlaceBits;  // packets, and behind them their large payloads

  struct Free {
    void operator()(std::byte* block) const { std::free(block); }
  };

  Packet* block(PacketId id) const { return reinterpret_cast<Packet*>(blocks_[id >> kPlaceBits].get()); }

  std::size_t mtu_;
  std::vector<std::unique_ptr<std::byte, Free>> blocks_;  // of a pool one after another
};

// First in, first out, through Packet::next.
class PacketQueue {
 public:
  bool empty() const { return first_ == nullptr; }
  Packet& front() const { return *first_; }
  void push(Packet& packet) {
    packet.next = kNoPacket;
    if (first_ == nullptr) {
      first_ = &packet;
    } else {
      last_->next = packet.id;
    }
    last_ = &packet;
  }
  // `memory`: of the packets in it.
  Packet& pop(const PacketMemory& memory) {
    Packet& packet = *first_;
    first_ = packet.next == kNoPacket ? nullptr : &memory.at(packet.next);
    return packet;
  }

 private:
  Packet* first_ = nullptr;
  Packet* last_ = nullptr;
};

}  // namespace verbscope::sim
