// The three workloads of atomic_rate: the clients' atomics, the survey of lock slots, and the server's counters.
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

  // Bytes of the server's region: the counters, or room to align the surveyed addresses.
  std::uint64_t region_bytes() const;
  // Operations outstanding on a QP, as its send queue allows.
  std::uint32_t outstanding(const Operation& op) const;
};

inline constexpr std::uint32_t kSurveyedBits = 20;  // address bits that --probe_slots looks at: up to bit 19

std::unique_ptr<Workload> make_atomic_client(const ThreadSetup& setup, const AtomicOptions& options);
std::unique_ptr<Workload> make_slot_prober(const ThreadSetup& setup, const AtomicOptions& options);
// Thread 0 adds the counters up after the run: its `received` is what all operations have added to them.
std::unique_ptr<Workload> make_counter_holder(const ThreadSetup& setup, const AtomicOptions& options);

// The results of the threads of a node: operations and successful swaps, or the findings of the survey.
Json atomic_results(const std::vector<const Workload*>& threads);

}  // namespace verbscope
