#include "lookups/chain.hpp"

#include <bit>

#include "common/error.hpp"

namespace verbscope::lookups {

Chain::Chain(Bytes bytes, std::uint32_t depth, std::uint64_t seed, PageSize pages)
    : memory_(bytes, pages), next_(reinterpret_cast<std::uint32_t*>(memory_.data())), depth_(depth) {
  if (!std::has_single_bit(bytes.value) || bytes.value < 64 || bytes.value > std::uint64_t{1} << 34 || depth == 0) {
    fail("a chain of {} steps over {} bytes: a step at least, and a power of two from 64 to 2^34 bytes", depth,
         bytes.value);
  }
  const std::uint64_t count = bytes.value / sizeof(std::uint32_t);
  mask_ = static_cast<std::uint32_t>(count - 1);
  for (std::uint64_t i = 0; i < count; ++i) next_[i] = held(seed, i) & mask_;
}

}  // namespace verbscope::lookups
