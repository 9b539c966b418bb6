// Which of several things a thread takes next: counters, keys, peers. Data path.
#pragma once

#include <cstdint>

#include "common/hash.hpp"

namespace verbscope {

// The order in which the numbers from 0 to `count` - 1 are taken.
class Choice {
 public:
  // `random`: uniformly, from `seed` (SplitMix64); otherwise one after the other, from `first` on. `count` is below
  // 2^32.
  Choice(std::uint64_t count, bool random, std::uint64_t seed, std::uint64_t first)
      : count_(count), state_(random ? seed : first), random_(random) {}

  std::uint64_t next() {
    if (!random_) return state_++ % count_;
    const std::uint64_t number = mix(state_);
    state_ += kMixStep;
    return (number >> 32) * count_ >> 32;
  }

 private:
  std::uint64_t count_;
  std::uint64_t state_;
  bool random_;
};

}  // namespace verbscope
