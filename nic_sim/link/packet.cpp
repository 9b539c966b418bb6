#include "nic_sim/link/packet.hpp"

#include <new>

#include "common/error.hpp"

namespace verbscope::sim {

// A block is allocated at once; the operating system backs only the pages that are used.
Packet& PacketMemory::add(std::size_t pool, std::size_t number) {
  constexpr std::size_t kMost = kBlock << kBlockBits;
  if (number >= kMost) fail("{} packets are under way: the simulator can have no more", kMost);
  const PacketId id = static_cast<PacketId>(pool * kMost + number);
  auto& block = blocks_[id >> kPlaceBits];
  if (block == nullptr) {
    block.reset(static_cast<std::byte*>(std::aligned_alloc(alignof(Packet), kBlock * most_bytes())));
    if (block == nullptr) throw std::bad_alloc();
  }
  const std::size_t place = number % kBlock;
  Packet* packet = new (block.get() + place * sizeof(Packet)) Packet;
  packet->id = id;
  packet->large_ = static_cast<std::uint32_t>((kBlock - place) * sizeof(Packet) + place * mtu_);
  return *packet;
}

}  // namespace verbscope::sim
