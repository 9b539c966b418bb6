// Pointer chasing: each place contains the number of the next, for a given number of steps (G-Opt, sections 2.5 and
// 3.3). There is hardly any computation, so that the memory latency dominates.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "common/error.hpp"
#include "common/hash.hpp"
#include "lookups/interleave.hpp"
#include "machine/memory.hpp"

namespace verbscope::lookups {

class Chain {
 public:
  using Key = std::uint32_t;     // start, below places()
  using Result = std::uint32_t;  // end of the chain

  // `bytes`: a power of two, from 64 to 2^34; `depth`: number of steps. The places contain random numbers of `seed`.
  Chain(Bytes bytes, std::uint32_t depth, std::uint64_t seed, PageSize pages);

  std::size_t places() const { return std::size_t{mask_} + 1; }
  std::uint32_t depth() const { return depth_; }
  const Buffer& memory() const { return memory_; }
  // The content of the place. Adding the number of the step gives the next place.
  const std::uint32_t* place(std::uint32_t number) const { return next_ + number; }
  // The content of a place, computed without the chain's memory, for any size. The place contains the low bits.
  static constexpr std::uint32_t content(std::uint64_t seed, std::uint64_t number) {
    return static_cast<std::uint32_t>(mix(seed + number * kMixStep));
  }
  // The place that follows `at` after `step` steps. `at` must be in the cache.
  std::uint32_t follow(std::uint32_t at, std::uint32_t step) const { return (next_[at] + step) & mask_; }

  template <Node N>
  Result find(N& node, Key at) const {
    for (std::uint32_t step = 0; step < depth_; ++step) {
      node.load(place(at));
      at = follow(at, step);
    }
    return at;
  }

  template <Node N>
  void find_group(N& node, std::span<const Key> keys, Result* results) const {
    for (std::size_t i = 0; i < keys.size(); ++i) node.prefetch(place(results[i] = keys[i]));
    for (std::uint32_t step = 0; step < depth_; ++step) {
      const bool last = step + 1 == depth_;
      for (std::size_t i = 0; i < keys.size(); ++i) {
        node.load(place(results[i]));
        results[i] = follow(results[i], step);
        if (!last) node.prefetch(place(results[i]));
      }
    }
  }

  template <Node N>
  static Lane find_lane(FrameSlot&, N& node, const Chain& chain, Batch<Key, Result>& batch) {
    while (batch.left()) {
      const std::size_t mine = batch.take();
      std::uint32_t at = batch.keys[mine];
      for (std::uint32_t step = 0; step < chain.depth_; ++step) {
        co_await Fetched{node, chain.place(at)};
        at = chain.follow(at, step);
      }
      batch.results[mine] = at;
    }
  }

 private:
  Buffer memory_;
  std::uint32_t* next_;
  std::uint32_t mask_;
  std::uint32_t depth_;
};

inline Chain::Chain(Bytes bytes, std::uint32_t depth, std::uint64_t seed, PageSize pages)
    : memory_(bytes, pages), next_(reinterpret_cast<std::uint32_t*>(memory_.data())), depth_(depth) {
  if (!std::has_single_bit(bytes.value) || bytes.value < 64 || bytes.value > std::uint64_t{1} << 34 || depth == 0) {
    fail("a chain of {} steps over {} bytes (allowed: 1 step or more, a power of two from 64 to 2^34 bytes)", depth,
         bytes.value);
  }
  const std::uint64_t count = bytes.value / sizeof(std::uint32_t);
  mask_ = static_cast<std::uint32_t>(count - 1);
  for (std::uint64_t i = 0; i < count; ++i) next_[i] = content(seed, i) & mask_;
}

}  // namespace verbscope::lookups
