// The memory of packets: reused; it grows to what is in flight at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "common/memory_share.hpp"
#include "common/units.hpp"
#include "nic_sim/link/packet.hpp"

namespace verbscope::sim {

// One for each partition of a cluster. A packet may be given back to another pool than it was taken from; that one
// keeps it until its own asks for it.
class PacketPool {
 public:
  PacketPool(Bytes mtu, std::size_t number, std::size_t pools)
      : mtu_(mtu.value), number_(static_cast<std::uint8_t>(number)), of_others_(pools) {}

  // A packet with room for `payload` bytes (at most the MTU), other fields as they were left.
  Packet& take(std::uint32_t payload) {
    Packet* packet = free_;
    if (packet != nullptr) {
      free_ = packet->next;
    } else {
      make_room();
      packet = &all_.emplace_back();
      packet->pool = number_;
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
    if (packet.pool == number_) {
      packet.next = free_;
      free_ = &packet;
    } else {
      of_others_[packet.pool].push(packet);
    }
  }

  // Its packets that were given back to `other` meanwhile. Neither of the two may be in use.
  void take_back_from(PacketPool& other) {
    PacketQueue& back = other.of_others_[number_];
    if (!back.empty()) free_ = back.in_front_of(free_);
  }

  std::size_t size() const { return all_.size(); }

 private:
  static constexpr std::size_t kStep = 1 << 20;  // bytes that are asked for at a time

  // Counts a further packet, with the memory of a large payload. Throws when the machine has none left.
  void make_room() {
    const std::size_t bytes = sizeof(Packet) + mtu_;
    if (room_ < bytes) {
      share_.add(kStep, "packets under way");
      room_ += kStep;
    }
    room_ -= bytes;
  }

  std::size_t mtu_;
  std::size_t room_ = 0;
  MemoryShare share_;
  std::uint8_t number_;
  Packet* free_ = nullptr;
  std::deque<Packet> all_;
  std::vector<PacketQueue> of_others_;  // packets of other pools, by pool
};

}  // namespace verbscope::sim
