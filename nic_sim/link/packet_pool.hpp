// The memory of packets: reused; it grows to what is in flight at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "common/memory_share.hpp"
#include "nic_sim/link/packet.hpp"

namespace verbscope::sim {

// One for each partition of a cluster. A packet may be given back to another pool than it was taken from; that one
// keeps it until its own asks for it.
class PacketPool {
 public:
  // `number`: of the pool, among `pools` in `memory`.
  PacketPool(PacketMemory& memory, std::size_t number, std::size_t pools)
      : memory_(memory), number_(number), of_others_(pools, kNoPacket) {}

  const PacketMemory& memory() const { return memory_; }

  // A packet with room for `payload` bytes (at most the MTU), other fields as they were left.
  Packet& take(std::uint32_t payload) {
    if (free_ == kNoPacket) [[unlikely]]
      free_ = add();
    Packet& packet = memory_.at(free_);
    free_ = packet.next;
    packet.kept = false;
    packet.payload = payload;
    return packet;
  }

  void give_back(Packet& packet) {
    const std::size_t pool = PacketMemory::pool_of(packet.id);
    PacketId& first = pool == number_ ? free_ : of_others_[pool];
    packet.next = std::exchange(first, packet.id);
  }

  // Its packets that were given back to `other` meanwhile. Neither of the two may be in use.
  void take_back_from(PacketPool& other) {
    for (PacketId id = std::exchange(other.of_others_[number_], kNoPacket); id != kNoPacket;) {
      Packet& packet = memory_.at(id);
      id = std::exchange(packet.next, free_);
      free_ = packet.id;
    }
  }

  std::size_t size() const { return size_; }

 private:
  static constexpr std::size_t kStep = 1 << 20;  // bytes that are asked for at a time

  // A further packet, counted with the memory of a large payload. Throws when the machine has none left.
  [[gnu::noinline]] PacketId add() {
    const std::size_t bytes = memory_.most_bytes();
    if (room_ < bytes) {
      share_.add(kStep, "packets under way");
      room_ += kStep;
    }
    room_ -= bytes;
    return memory_.add(number_, size_++).id;
  }

  PacketMemory& memory_;
  std::size_t number_;
  std::size_t size_ = 0;
  std::size_t room_ = 0;
  MemoryShare share_;
  PacketId free_ = kNoPacket;        // the first of a list, as the next
  std::vector<PacketId> of_others_;  // packets of other pools, by pool
};

}  // namespace verbscope::sim
