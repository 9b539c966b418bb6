// Closed-form time of look-ups in memory, from a host's memory parameters: one by one, in batches that hide latency,
// and the break-even point. docs/lookups.md has the derivation and the limits of the model.
#pragma once

#include <cstddef>
#include <string>

#include "common/json.hpp"

namespace verbscope {

// Measured or documented parameters of a host.
struct HostMemory {
  double latency_ns = 0;   // an access that depends on the previous one
  double parallel_ns = 0;  // per access, with many independent ones in flight
  double cached_ns = 0;    // a dependent access that hits the first-level cache
  double switch_ns = 0;    // an access of an interleaved look-up that hits the first-level cache
  double stage_ns = 0;     // the same for look-ups in a group
  double window = 0;       // instructions that the core keeps in flight: its own look-ahead

  // Accesses in flight at once, if there are enough independent ones.
  double at_once() const { return latency_ns / parallel_ns; }
};

// One look-up in a data structure.
struct MemoryWalk {
  double accesses = 0;      // mean number
  double compute_ns = 0;    // besides its accesses
  double instructions = 0;  // of a single look-up; 0: branches that wait for memory prevent look-ahead
};

struct WalkTimes {
  double baseline_ns = 0;
  double group_ns = 0;
  double interleaved_ns = 0;
  std::string binding;  // limit of interleaved_ns: "latency" (too few in flight), "memory" (its rate) or "cpu"
};

// With k accesses, L latency, p parallel, s switch, c computation, B look-ups at once:
//   baseline = max(k p, (k L + c) / w): without batches w = 1 + window / instructions look-ups overlap, at most L / p.
//   interleaved = max(k L / B, k p, k s + c); group: the same with `stage_ns`.
// Throws Error if a number that must be positive is not.
WalkTimes predict_walk(const HostMemory& host, const MemoryWalk& walk, std::size_t batch);

// The smallest number of accesses per look-up for which interleaving is faster; 0 if none up to 1000. Each access adds
// `instructions_per_access` to the fixed instructions. Ignores `walk.accesses`.
std::size_t break_even_accesses(const HostMemory& host, MemoryWalk walk, double instructions_per_access,
                                std::size_t batch);

Json to_json(const HostMemory& host);
Json to_json(const WalkTimes& times);

}  // namespace verbscope
