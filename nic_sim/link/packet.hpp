// Packets travel between NICs, and hold the bytes meanwhile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "common/units.hpp"
#include "wire/wqe.hpp"

namespace verbscope::sim {

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

  Packet* next = nullptr;  // in whichever queue holds it
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
  std::uint8_t pool = 0;      // the pool that it was taken from
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
  std::byte* data = nullptr;  // `payload` bytes

 private:
  friend class PacketPool;
  static constexpr std::size_t kOwnBytes = 192;
  std::unique_ptr<std::byte[]> large_;  // kept with the packet once it was needed
  std::byte own_[kOwnBytes];            // begins with a cache line
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

// First in, first out, through Packet::next.
class PacketQueue {
 public:
  bool empty() const { return first_ == nullptr; }
  Packet& front() const { return *first_; }
  void push(Packet& packet) {
    packet.next = nullptr;
    (first_ == nullptr ? first_ : last_->next) = &packet;
    last_ = &packet;
  }
  Packet& pop() {
    Packet& packet = *first_;
    first_ = packet.next;
    return packet;
  }
  // Empties the queue: its first packet, and `rest` linked behind its last; there is one.
  Packet* in_front_of(Packet* rest) {
    last_->next = rest;
    return std::exchange(first_, nullptr);
  }

 private:
  Packet* first_ = nullptr;
  Packet* last_ = nullptr;
};

}  // namespace verbscope::sim
