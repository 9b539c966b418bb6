// The memory of a host's programs as its NIC reaches it: the regions that are registered, by their keys, the cache of
// address translations, and the bytes themselves.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "nic_sim/host/memory_watch.hpp"
#include "nic_sim/link/packet_pool.hpp"
#include "nic_sim/link/pcie_bus.hpp"
#include "nic_sim/nic/counts.hpp"
#include "nic_sim/nic/objects.hpp"
#include "nic_sim/profile/profile.hpp"
#include "nic_sim/time/engine.hpp"

namespace verbscope::sim {

class HostMemory {
 public:
  HostMemory(const NicProfile& profile, NicCounts& counts, std::uint64_t seed)
      : translations_(profile.translation_cache, Replacement::random, seed), counts_(counts) {}

  // Yields the key of the new region, for lkey and rkey.
  std::uint32_t add(SimMr& mr);
  void remove(SimMr& mr);

  // The region that `key` names if it holds [address, address + bytes), whatever its protection domain and what it
  // grants; else null. For what was allowed, and may have been deregistered since.
  SimMr* find(std::uint32_t key, std::uint64_t address, std::uint64_t bytes) const;

  // Whether `key` names a region of `pd` that holds [address, address + bytes) and grants `access`.
  bool grants(const ibv_pd& pd, std::uint32_t key, std::uint64_t address, std::uint64_t bytes, int access) const {
    const SimMr* mr = find(key, address, bytes);
    return mr != nullptr && mr->pd == &pd && (mr->access & access) == access;
  }

  // Bytes of a program, at its own addresses, which a region holds; it is what DMA does, and the only place that does.
  void read(std::uint64_t address, std::byte* to, std::uint64_t bytes) const {
    std::memcpy(to, reinterpret_cast<const std::byte*>(address), bytes);
  }
  void write(std::uint64_t address, const std::byte* from, std::uint64_t bytes) const {
    std::memcpy(reinterpret_cast<std::byte*>(address), from, bytes);
  }

  // How many translations of [address, address + bytes) are not in their cache, each one cache line to read; they will
  // be there then. None where `key` names no region.
  std::uint64_t missing_translations(std::uint32_t key, std::uint64_t address, std::uint64_t bytes);

 private:
  std::vector<SimMr*> mrs_;
  std::uint32_t registrations_ = 0;
  Cache<Translation> translations_;
  NicCounts& counts_;
};

// Writes payload that comes with packets to the host's memory, over PCIe, and wakes the threads that poll there.
class PayloadWriter {
 public:
  PayloadWriter(Engine& engine, PcieBus& bus, PacketPool& packets, const HostMemory& memory)
      : engine_(engine), bus_(bus), packets_(packets), memory_(memory) {}
  PayloadWriter(const PayloadWriter&) = delete;
  PayloadWriter& operator=(const PayloadWriter&) = delete;

  // Writes the payload of `packet` to `address`, in the region of its rkey, and gives the packet back when the bytes
  // are there.
  void write(std::uint64_t address, Packet& packet);

  // How many payloads are not there yet.
  std::uint64_t under_way() const { return under_way_; }

  // Whether a thread polls there, so that it must not see bytes before they are written.
  bool polled(std::uint64_t address, std::uint64_t bytes) const { return watch_.polled(address, bytes); }
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
