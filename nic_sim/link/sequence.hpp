// Packet sequence numbers. The simulator uses 32 bits where the wire has 24: only their order matters here.
#pragma once

#include <cstdint>

namespace verbscope::sim {

// Compares numbers that wrap.
constexpr bool sequence_before(std::uint32_t a, std::uint32_t b) {
  return static_cast<std::int32_t>(a - b) < 0;
}

}  // namespace verbscope::sim
