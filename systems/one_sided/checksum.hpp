// The checksum by which a client knows whether what it READ is whole: a chain of SplitMix64 over the words. It tells
// bytes that a CPU was writing from those that it had written, but protects against nobody who means harm.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "common/hash.hpp"

namespace verbscope {

// Of `bytes` bytes, the last word filled up with zeros; `start` is something else that must be right, too.
inline std::uint64_t checksum(const std::byte* from, std::size_t bytes, std::uint64_t start) {
  std::uint64_t sum = mix(start ^ bytes);
  for (std::size_t at = 0; at < bytes; at += sizeof sum) {
    std::uint64_t word = 0;
    std::memcpy(&word, from + at, std::min(sizeof word, bytes - at));
    sum = mix(sum ^ word);
  }
  return sum;
}

}  // namespace verbscope
