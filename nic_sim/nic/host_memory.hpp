// The memory of a host's programs as its NIC reaches it: the regions that are registered, by their keys, the cache of
// address translations, and the bytes themselves.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "nic_sim/nic/caches.hpp"
#include "nic_sim/nic/counts.hpp"
#include "nic_sim/nic/objects.hpp"
#include "nic_sim/profile/profile.hpp"

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

}  // namespace verbscope::sim
