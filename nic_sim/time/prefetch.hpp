// Asking this machine's processor for memory that the simulation will soon look at.
#pragma once

#include <cstdint>

#include "wire/pcie.hpp"

namespace verbscope::sim {

// The cache lines of [address, address + bytes) come while other work is done. Any address may be asked for.
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
