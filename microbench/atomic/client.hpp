// The three workloads of atomic_rate: the clients' atomics, the probe of lock slots, and the server's counters.
#pragma once

#include <memory>

#include "microbench/bench/benchmark.hpp"
#include "wire/wqe.hpp"

namespace verbscope {

struct AtomicOptions {
  Verb verb = Verb::fetch_add;
  std::uint64_t counters = 1;
  bool random = true;
  std::uint64_t stride = kAtomicBytes;  // bytes from a counter to the next
  std::uint32_t most_outstanding = 16;  // operations of a QP
  bool probe_slots = false;

  // Bytes of the server's region: the counters, or enough to align the addresses of the survey.
  std::uint64_t region_bytes() const;
  // Outstanding operations per QP, limited by its send queue.
  std::uint32_t outstanding(const Operation& op) const;
};

inline constexpr std::uint32_t kSurveyedBits = 20;  // --probe_slots examines address bits 0 to 19

std::unique_ptr<Workload> make_atomic_client(const ThreadSetup& setup, const AtomicOptions& options);
std::unique_ptr<Workload> make_slot_prober(const ThreadSetup& setup, const AtomicOptions& options);
// After the run thread 0 returns the sum of all counters as `received`.
std::unique_ptr<Workload> make_counter_holder(const ThreadSetup& setup, const AtomicOptions& options);

// The results of the threads of a node: operations and successful swaps, or the result of the survey.
Json atomic_results(const std::vector<const Workload*>& threads);

}  // namespace verbscope
