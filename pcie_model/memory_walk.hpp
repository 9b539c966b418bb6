// Look-ups in memory in closed form: from what a host's memory does, how long a look-up takes one by one and in batches
// that hide latency, and where the two cross. docs/lookups.md has the derivation and what it leaves out.
#pragma once

#include <cstddef>
#include <string>

#include "common/json.hpp"

namespace verbscope {

// What was measured of the host, or is documented of it.
struct HostMemory {
  double latency_ns = 0;   // one access that depends on the one before it
  double parallel_ns = 0;  // one of many independent accesses
  double cached_ns = 0;    // one dependent access that hits the first cache
  double switch_ns = 0;    // one access of a look-up that takes turns with others, when it hits the first cache
  double stage_ns = 0;     // the same in a group
  double window = 0;       // instructions that the core holds in flight: how far it looks ahead by itself

  // Accesses that are under way at once when enough independent ones are there.
  double at_once() const { return latency_ns / parallel_ns; }
};

// A look-up of a structure.
struct MemoryWalk {
  double accesses = 0;      // on average
  double compute_ns = 0;    // beside its accesses
  double instructions = 0;  // one by one; 0: branches that wait for memory keep the core from looking ahead
};

struct WalkTimes {
  double baseline_ns = 0;
  double group_ns = 0;
  double interleaved_ns = 0;
  std::string binding;  // of the interleaved: "latency" (too few at once), "memory" (its rate) or "cpu"
};

// k accesses, L latency, p parallel, s switch, c computation, B look-ups at once:
//   baseline = max(k p, (k L + c) / w), where w = 1 + window / instructions look-ups overlap by themselves, at most L /
//   p; interleaved = max(k L / B, k p, k s + c), and the same with `stage_ns` for a group.
// Throws Error when a number that must be positive is not.
WalkTimes predict_walk(const HostMemory& host, const MemoryWalk& walk, std::size_t batch);

// The number of accesses of a look-up from which interleaving is quicker, when each adds so many instructions to the
// fixed ones; 0: none up to 1000. `walk.accesses` does not count.
std::size_t break_even_accesses(const HostMemory& host, MemoryWalk walk, double instructions_an_access,
                                std::size_t batch);

Json to_json(const HostMemory& host);
Json to_json(const WalkTimes& times);

}  // namespace verbscope
