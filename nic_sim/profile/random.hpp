// The simulator's random numbers: xoshiro256** of Blackman and Vigna (2018), seeded by SplitMix64. The distributions of
// the standard library differ between implementations, and a seed must give the same results everywhere.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "common/hash.hpp"
#include "common/units.hpp"

namespace verbscope::sim {

class Random {
 public:
  explicit Random(std::uint64_t seed) {
    for (std::uint64_t& word : state_) {
      word = mix(seed);
      seed += kMixStep;
    }
  }

  std::uint64_t next() {
    const std::uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
    const std::uint64_t shifted = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= shifted;
    state_[3] = std::rotl(state_[3], 45);
    return result;
  }

  // Uniform in [0, 1).
  double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

  // Exponentially distributed.
  Picos exponential(Picos mean) {
    return Picos(static_cast<std::int64_t>(-std::log1p(-uniform()) * static_cast<double>(mean.count())));
  }

  // Uniform in [0, bound), for bounds well below 2^53.
  std::uint64_t below(std::uint64_t bound) {
    return static_cast<std::uint64_t>(uniform() * static_cast<double>(bound));
  }

 private:
  std::uint64_t state_[4];
};

}  // namespace verbscope::sim
