// What travels between NICs, and where the bytes are meanwhile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "common/units.hpp"
#include "pcie_model/wire/wqe.hpp"

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
    atomic_response
  };

  Packet* next = nullptr;  // in whichever queue holds it
  Kind kind = Kind::request;
  Verb verb = Verb::send;  // of a request
  Transport transport = Transport::rc;
  bool first = true;  // of its message
  bool last = true;
  bool has_immediate = false;
  bool has_grh = false;
  bool solicited = false;
  bool kept = false;       // a request whose payload is on its way to memory: given back when it is there
  bool counted = false;    // a response that ends one of the responder's reads
  bool completes = false;  // its work request is done, and signaled, when it has left the port
  std::uint8_t port = 0;   // index from 0; the same on both sides
  std::uint16_t life = 0;  // SimQp::life of the sender's QP
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
  std::uint32_t offset = 0;      // of the payload in its message
  std::uint64_t wqe = 0;         // the sender's work request
  // Of WRITE, READ and atomics: RETH and AtomicETH. The simulator repeats them in each packet of a WRITE.
  std::uint64_t remote_address = 0;  // of the whole message
  std::uint32_t rkey = 0;
  std::uint32_t length = 0;   // of the whole message, bytes
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

// Packets are reused; the pool grows to what is in flight at once.
class PacketPool {
 public:
  explicit PacketPool(Bytes mtu) : mtu_(mtu.value) {}

  // A packet with room for `payload` bytes (at most the MTU), other fields as they were left.
  Packet& take(std::uint32_t payload) {
    Packet* packet = free_;
    if (packet != nullptr) {
      free_ = packet->next;
    } else {
      packet = &all_.emplace_back();
    }
    packet->next = nullptr;
    packet->kept = false;
    packet->payload = payload;
    if (payload <= Packet::kOwnBytes) {
      packet->data = packet->own_;
    } else {
      if (packet->large_ == nullptr) packet->large_ = std::make_unique<std::byte[]>(mtu_);
      packet->data = packet->large_.get();
    }
    return *packet;
  }
  void give_back(Packet& packet) {
    packet.next = free_;
    free_ = &packet;
  }
  std::size_t size() const { return all_.size(); }

 private:
  std::size_t mtu_;
  std::deque<Packet> all_;
  Packet* free_ = nullptr;
};

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

 private:
  Packet* first_ = nullptr;
  Packet* last_ = nullptr;
};

}  // namespace verbscope::sim
