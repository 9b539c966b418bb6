// The lines that a core has asked memory for. A miss takes the latency of DRAM, so many are under way at once, and one
// more begins when the first of them has ended. What is not asked for here is in the cache and costs nothing more.
#pragma once

#include <boost/container/small_vector.hpp>
#include <cstddef>
#include <cstdint>

#include "common/units.hpp"

namespace verbscope::sim {

class MemoryMisses {
 public:
  // Prefetched lines that nobody has read yet: when there are more, the oldest is forgotten, as if it had left the L1
  // cache, which has so many lines (32 KB).
  static constexpr std::size_t kRemembered = 512;

  MemoryMisses(Picos latency, std::uint64_t at_once) : latency_(latency), at_once_(at_once) {}

  // The line of `place` is asked for at `now`; a line that was asked for and not read yet is not asked for again.
  // Yields the time at which the thread goes on: it waits while as many misses as there can be are under way.
  Picos prefetch(const void* place, Picos now);
  // The line is read, and forgotten. Yields the time at which it is there: that of its prefetch, or a whole latency.
  Picos load(const void* place, Picos now);

 private:
  struct Miss {
    std::uintptr_t line;
    Picos there;
  };
  static std::uintptr_t line_of(const void* place) { return reinterpret_cast<std::uintptr_t>(place) / 64; }
  Miss* find(std::uintptr_t line);
  Picos begin(Picos now);

  Picos latency_;
  std::uint64_t at_once_;
  boost::container::small_vector<Miss, 4> asked_;       // in the order of asking
  boost::container::small_vector<Picos, 4> under_way_;  // when each ends, ascending
};

}  // namespace verbscope::sim
