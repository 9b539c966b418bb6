// Prefetches memory of this machine that the simulation will soon access.
#pragma once

#include <cstdint>

#include "wire/pcie.hpp"

namespace verbscope::sim {

// Prefetches the cache lines of [address, address + bytes). The address need not be valid.
inline void prefetch(std::uint64_t address, std::uint64_t bytes) {
  if (bytes == 0) return;
  for (std::uint64_t offset = 0; offset < bytes; offset += kCacheLine.value) {
    __builtin_prefetch(reinterpret_cast<const void*>(address + offset));
  }
  __builtin_prefetch(reinterpret_cast<const void*>(address + bytes - 1));
}
inline void prefetch(const void* begin, std::uint64_t bytes) {
  prefetch(reinterpret_cast<std::uint64_t>(begin), bytes);
}

}  // namespace verbscope::sim
