// Pools of free packets. Their memory grows with the packets in flight, not with simulated time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "common/memory_share.hpp"
#include "nic_sim/link/packet.hpp"

namespace verbscope::sim {

// Each partition of a cluster has one. A packet may be given back to another pool than its own; that pool keeps it
// until its own pool collects it.
class PacketPool {
 public:
  // `number`: of this pool, among `pools` pools in `memory`.
  PacketPool(PacketMemory& memory, std::size_t number, std::size_t pools)
      : memory_(memory), number_(number), of_others_(pools, kNoPacket) {}

  const PacketMemory& memory() const { return memory_; }

  // Returns a packet with room for `payload` bytes (up to the MTU). Other fields keep their last values.
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

  // Collects the packets of this pool that were given back to `other`. No thread may use either pool meanwhile.
  void take_back_from(PacketPool& other) {
    for (PacketId id = std::exchange(other.of_others_[number_], kNoPacket); id != kNoPacket;) {
      Packet& packet = memory_.at(id);
      id = std::exchange(packet.next, free_);
      free_ = packet.id;
    }
  }

  std::size_t size() const { return size_; }

 private:
  static constexpr std::size_t kStep = 1 << 20;  // bytes that MemoryShare counts at a time

  // Creates a packet, counted with room for a large payload. Throws Error if the machine has no memory left.
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
  PacketId free_ = kNoPacket;        // head of a list
  std::vector<PacketId> of_others_;  // heads of lists of other pools' packets, by pool
};

}  // namespace verbscope::sim
