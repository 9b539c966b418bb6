// A host's memory as its NIC accesses it: registered regions by key, the cache of address translations, and the bytes.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "nic_sim/host/polling.hpp"
#include "nic_sim/link/packet_pool.hpp"
#include "nic_sim/link/pcie_bus.hpp"
#include "nic_sim/nic/counts.hpp"
#include "nic_sim/nic/objects.hpp"
#include "nic_sim/profile/profile.hpp"
#include "nic_sim/time/engine.hpp"
#include "verbs/sge_walk.hpp"

namespace verbscope::sim {

class HostMemory {
 public:
  // A memory key is an index and 8 bits that change with each registration or binding (ibv_inc_rkey), so that an
  // outdated key is detected.
  static constexpr std::uint32_t kKeyTagBits = 8;

  HostMemory(const NicProfile& profile, NicCounts& counts, std::uint64_t seed)
      : translations_(profile.translation_cache, Replacement::random, seed), counts_(counts) {}

  // Gives the region a key.
  void add(Region& region);
  void remove(const Region& region);
  // Forgets the cached translations of a region that is deregistered or moved.
  void drop_translations(SimMr& mr);

  // The region with `key` if it contains [address, address + bytes); else null. Checks no rights: for accesses that
  // were checked before, and whose region may have been deregistered since.
  const Region* find(std::uint32_t key, std::uint64_t address, std::uint64_t bytes) const;

  // The region or window whose key differs from `key` at most in the bits that change; null if there is none.
  Region* of_index(std::uint32_t key) const {
    const std::uint32_t index = (key >> kKeyTagBits) - 1;
    return index < regions_.size() ? regions_[index] : nullptr;
  }

  // The region with `key` if it contains [address, address + bytes) and grants `access` to the QP; else null.
  const Region* granted(const SimQp& qp, std::uint32_t key, std::uint64_t address, std::uint64_t bytes,
                        int access) const {
    const Region* region = find(key, address, bytes);
    const bool grants =
        region != nullptr && (region->owner == qp.pd || region->owner == &qp) && (region->access & access) == access;
    return grants ? region : nullptr;
  }

  // DMA access to a program's memory, at an address inside a region. The only place that does this.
  static void read(const Region& region, std::uint64_t address, std::byte* to, std::uint64_t bytes) {
    if (region.space != nullptr) [[unlikely]]
      return region.space->read(region.at(address), to, bytes);
    std::memcpy(to, region.at(address), bytes);
  }
  static void write(const Region& region, std::uint64_t address, const std::byte* from, std::uint64_t bytes) {
    if (region.space != nullptr) [[unlikely]]
      return region.space->write(region.at(address), from, bytes);
    std::memcpy(region.at(address), from, bytes);
  }

  // Looks up the translations of [address, address + bytes) and returns the number of misses; each needs a DMA read of
  // one cache line. They are cached afterwards. 0 if `key` is of no region.
  std::uint64_t missing_translations(std::uint32_t key, std::uint64_t address, std::uint64_t bytes);
  // Likewise for [begin, begin + bytes) of a list.
  std::uint64_t missing_translations(std::span<const ibv_sge> sges, std::uint64_t begin, std::uint64_t bytes) {
    std::uint64_t missing = 0;
    walk_sges(sges, begin, bytes,
              [this, &missing](std::uint64_t address, std::uint64_t piece_bytes, std::uint32_t lkey) {
                missing += missing_translations(lkey, address, piece_bytes);
                return true;
              });
    return missing;
  }

 private:
  std::vector<Region*> regions_;
  std::uint32_t registrations_ = 0;
  Cache<Translation> translations_;
  NicCounts& counts_;
};

// Writes the payload of packets to the host's memory over PCIe and wakes the threads that poll there.
class PayloadWriter {
 public:
  PayloadWriter(Engine& engine, PcieBus& bus, PacketPool& packets, const HostMemory& memory)
      : engine_(engine), bus_(bus), packets_(packets), memory_(memory) {}
  PayloadWriter(const PayloadWriter&) = delete;
  PayloadWriter& operator=(const PayloadWriter&) = delete;

  // Writes the payload of `packet` to `address`, in the region of its rkey, and frees the packet afterwards. `ago`: as
  // in PcieBus::dma_write. Region and request have the same offsets within pages.
  void write(std::uint64_t address, Packet& packet, Picos ago = Picos(0));

  // Number of payloads that are not yet in memory.
  std::uint64_t under_way() const { return under_way_; }

  // True if a thread polls there, and so must not see the bytes before the DMA write ends.
  bool is_polled(const std::byte* memory, std::uint64_t bytes) const {
    return watch_.is_polled(reinterpret_cast<std::uint64_t>(memory), bytes);
  }
  // The threads that poll memory.
  MemoryWatch& watch() { return watch_; }

 private:
  static void written(void* writer, std::uint64_t packet);

  Engine& engine_;
  PcieBus& bus_;
  PacketPool& packets_;
  const HostMemory& memory_;
  std::uint64_t under_way_ = 0;
  MemoryWatch watch_;
};

}  // namespace verbscope::sim
