// The memory of packets, queues of packets, and pools of free packets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "common/error.hpp"
#include "common/memory_share.hpp"
#include "common/units.hpp"
#include "nic_sim/link/packet.hpp"

namespace verbscope::sim {

// The memory of the packets of all pools of a cluster, in blocks.
class PacketMemory {
 public:
  static constexpr std::size_t kMaxPools = 256;

  PacketMemory(Bytes mtu, std::size_t pools) : mtu_(mtu.value), blocks_(pools << kBlockBits) {}

  Packet& at(PacketId id) const { return block(id)[id & (kBlock - 1)]; }
  static std::size_t pool_of(PacketId id) { return id >> (kPlaceBits + kBlockBits); }
  // Memory of a packet with the largest payload.
  std::size_t max_bytes() const { return sizeof(Packet) + mtu_; }

  // Creates packet `number` of a pool, the first that it does not have. Other threads may call at() meanwhile. Throws
  // Error if the pool is full, and std::bad_alloc.
  Packet& add(std::size_t pool, std::size_t number);

 private:
  static constexpr unsigned kPlaceBits = 12, kBlockBits = 12;
  // Packets of a block, which holds their large payloads behind them.
  static constexpr std::size_t kBlock = std::size_t{1} << kPlaceBits;

  struct Free {
    void operator()(std::byte* block) const { std::free(block); }
  };

  Packet* block(PacketId id) const { return reinterpret_cast<Packet*>(blocks_[id >> kPlaceBits].get()); }

  std::size_t mtu_;
  std::vector<std::unique_ptr<std::byte, Free>> blocks_;  // 2^kBlockBits per pool
};

// A block is allocated at once; the operating system backs only the pages that are used.
[[gnu::noinline]] inline Packet& PacketMemory::add(std::size_t pool, std::size_t number) {
  constexpr std::size_t kMax = kBlock << kBlockBits;
  if (number >= kMax) fail("more than {} packets in flight in a partition; reduce the outstanding operations", kMax);
  const PacketId id = static_cast<PacketId>(pool * kMax + number);
  auto& block = blocks_[id >> kPlaceBits];
  if (block == nullptr) {
    block.reset(static_cast<std::byte*>(std::aligned_alloc(alignof(Packet), kBlock * max_bytes())));
    if (block == nullptr) throw std::bad_alloc();
  }
  const std::size_t place = number % kBlock;
  Packet* packet = new (block.get() + place * sizeof(Packet)) Packet;
  packet->id = id;
  packet->large_ = static_cast<std::uint32_t>((kBlock - place) * sizeof(Packet) + place * mtu_);
  return *packet;
}

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
  // `memory` holds the packets of the queue.
  Packet& pop(const PacketMemory& memory) {
    Packet& packet = *first_;
    first_ = packet.next == kNoPacket ? nullptr : &memory.at(packet.next);
    return packet;
  }

 private:
  Packet* first_ = nullptr;
  Packet* last_ = nullptr;
};

// A pool of free packets: its memory grows with the packets in flight, not with simulated time. Each partition of a
// cluster has one. A packet may be given back to another pool than its own; that pool keeps it until its own pool
// collects it.
class PacketPool {
 public:
  // `number`: of this pool, among `pools` pools in `memory`.
  PacketPool(PacketMemory& memory, std::size_t number, std::size_t pools)
      : memory_(memory), number_(number), foreign_(pools, kNoPacket) {}

  const PacketMemory& memory() const { return memory_; }

  // Returns a packet with room for `payload` bytes (up to the MTU). Other fields keep their last values.
  Packet& take(std::uint32_t payload) {
    if (free_ == kNoPacket) [[unlikely]]
      free_ = add();
    Packet& packet = memory_.at(free_);
    free_ = packet.next;
    packet.freed_by_writer = false;
    packet.payload = payload;
    return packet;
  }

  Packet& copy_of(const Packet& packet) {
    Packet& copy = take(packet.payload);
    copy.copy_contents(packet);
    return copy;
  }

  void give_back(Packet& packet) {
    const std::size_t pool = PacketMemory::pool_of(packet.id);
    PacketId& first = pool == number_ ? free_ : foreign_[pool];
    packet.next = std::exchange(first, packet.id);
  }

  // Collects the packets of this pool that were given back to `other`. No thread may use either pool meanwhile.
  void collect_from(PacketPool& other) {
    for (PacketId id = std::exchange(other.foreign_[number_], kNoPacket); id != kNoPacket;) {
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
    const std::size_t bytes = memory_.max_bytes();
    if (room_ < bytes) {
      share_.add(kStep, "packets in flight");
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
  PacketId free_ = kNoPacket;      // head of a list
  std::vector<PacketId> foreign_;  // heads of lists of other pools' packets, by pool
};

// Replicates a packet to a multicast group: calls `send` with a copy for each of `nodes` nodes. The packet itself is
// the last one.
template <class Send>
void copy_to_nodes(PacketPool& pool, Packet& packet, std::uint32_t nodes, Send&& send) {
  for (std::uint32_t node = 0; node < nodes; ++node) {
    Packet& copy = node + 1 < nodes ? pool.copy_of(packet) : packet;
    copy.target_node = node;
    send(copy);
  }
}

}  // namespace verbscope::sim
