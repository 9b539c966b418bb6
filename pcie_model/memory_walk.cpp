#include "pcie_model/memory_walk.hpp"

#include <algorithm>

#include "common/error.hpp"

namespace verbscope {

namespace {

constexpr std::size_t kMaxAccesses = 1000;

}  // namespace

WalkTimes predict_walk(const HostMemory& host, const MemoryWalk& walk, std::size_t batch) {
  if (host.latency_ns <= 0 || host.parallel_ns <= 0 || walk.accesses <= 0 || batch == 0) {
    fail("predict_walk: latency {} ns, parallel {} ns, {} accesses, batch {}: all must be above 0", host.latency_ns,
         host.parallel_ns, walk.accesses, batch);
  }
  const double k = walk.accesses;
  const double memory = k * host.parallel_ns;
  const double ahead = walk.instructions > 0 ? host.window / walk.instructions : 0;
  const double overlap = std::clamp(1 + ahead, 1.0, std::max(1.0, host.at_once()));
  const double latency = k * host.latency_ns / static_cast<double>(batch);
  const double cpu = k * host.switch_ns + walk.compute_ns;
  WalkTimes times;
  times.baseline_ns = std::max(memory, (k * host.latency_ns + walk.compute_ns) / overlap);
  times.group_ns = std::max({latency, memory, k * host.stage_ns + walk.compute_ns});
  times.interleaved_ns = std::max({latency, memory, cpu});
  times.binding = times.interleaved_ns == cpu ? "cpu" : times.interleaved_ns == memory ? "memory" : "latency";
  return times;
}

std::size_t break_even_accesses(const HostMemory& host, MemoryWalk walk, double instructions_per_access,
                                std::size_t batch) {
  const double fixed = walk.instructions;
  for (std::size_t k = 1; k <= kMaxAccesses; ++k) {
    walk.accesses = static_cast<double>(k);
    if (fixed > 0) walk.instructions = fixed + walk.accesses * instructions_per_access;
    const WalkTimes times = predict_walk(host, walk, batch);
    if (times.interleaved_ns < times.baseline_ns) return k;
  }
  return 0;
}

Json to_json(const HostMemory& host) {
  return {{"latency_ns", host.latency_ns},     {"parallel_ns", host.parallel_ns}, {"at_once", host.at_once()},
          {"cached_ns", host.cached_ns},       {"switch_ns", host.switch_ns},     {"stage_ns", host.stage_ns},
          {"window_instructions", host.window}};
}

Json to_json(const WalkTimes& times) {
  return {{"baseline_ns", times.baseline_ns},
          {"group_ns", times.group_ns},
          {"interleaved_ns", times.interleaved_ns},
          {"binding", times.binding}};
}

}  // namespace verbscope
