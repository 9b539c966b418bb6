// Packet sequence numbers. The simulator uses 32 bits instead of 24: only their order matters.
#pragma once

#include <cstdint>

namespace verbscope::sim {

// True if `a` is before `b`. Numbers wrap.
constexpr bool sequence_before(std::uint32_t a, std::uint32_t b) {
  return static_cast<std::int32_t>(a - b) < 0;
}

}  // namespace verbscope::sim
