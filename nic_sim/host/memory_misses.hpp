// The cache misses of a core. A miss takes the latency of DRAM. Only a limited number is outstanding at once; one more
// begins when the first of them ends. Memory that is not declared here is cached and costs nothing extra.
#pragma once

#include <boost/container/small_vector.hpp>
#include <cstddef>
#include <cstdint>

#include "common/units.hpp"

namespace verbscope::sim {

class MemoryMisses {
 public:
  // Prefetched lines that were not loaded yet. If there are more, the oldest is forgotten, as if evicted from the L1
  // cache, which has this many lines (32 KB).
  static constexpr std::size_t kRemembered = 512;

  MemoryMisses(Picos latency, std::uint64_t at_once) : latency_(latency), at_once_(at_once) {}

  // Prefetches the line of `place` at `now`; no effect if it is prefetched already. Returns the time at which the
  // thread continues: it stalls while the maximum of misses is outstanding.
  Picos prefetch(const void* place, Picos now);
  // Loads the line, and forgets its prefetch. Returns the time at which the data are available: when the prefetch ends,
  // or after a whole latency.
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
  boost::container::small_vector<Miss, 4> asked_;       // in order of prefetch
  boost::container::small_vector<Picos, 4> under_way_;  // end times, ascending
};

}  // namespace verbscope::sim
