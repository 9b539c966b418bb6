// Totals of requests, RECVs and completions. Each member is a count that never decreases, so totals are added member by
// member.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/pcie_events.hpp"

namespace verbscope::driver {

inline constexpr std::size_t kOpcodes = 16;      // the values of ibv_wr_opcode, 0 to 15
inline constexpr std::size_t kSizeClasses = 33;  // 0: empty; k: from 2^(k-1) to 2^k - 1 bytes
inline constexpr std::size_t kListClasses = 12;  // likewise, of lists and batches; the last one: all longer
inline constexpr std::size_t kStatuses = 24;     // the values of ibv_wc_status
inline constexpr std::size_t kTimeClasses = 40;  // likewise, from post to completion, in TSC ticks

// PCIe events. `exact`: those that the driver determines. Those that the adapter determines are between `least` and
// `most`; never add the two.
struct PcieCost {
  PcieCounts exact;
  PcieCounts least;
  PcieCounts most;
};

struct SendTotals {
  std::uint64_t by_opcode[kOpcodes] = {};
  std::uint64_t bytes_by_opcode[kOpcodes] = {};
  std::uint64_t by_size[kSizeClasses] = {};
  std::uint64_t inlined = 0;
  std::uint64_t signaled = 0;
  std::uint64_t fenced = 0;
  std::uint64_t elements = 0;  // scatter/gather elements
  std::uint64_t payload_bytes = 0;
  std::uint64_t inline_bytes = 0;
  std::uint64_t wqe_bytes = 0;        // in units of 16 bytes
  std::uint64_t wqe_blocks = 0;       // of 64 bytes
  std::uint64_t alone = 0;            // requests that were posted as a list of one
  std::uint64_t blueflames = 0;       // those of `alone` that went by BlueFlame
  std::uint64_t doorbell_blocks = 0;  // WQE blocks that the adapter had to read
  PcieCost pcie;
};

struct ReceiveTotals {
  std::uint64_t completions = 0;
  std::uint64_t payload_bytes = 0;
  PcieCost pcie;
};

// into += weight * from, member by member. T must contain only std::uint64_t.
template <class T>
void add_scaled(T& into, const T& from, std::uint64_t weight) {
  static_assert(sizeof(T) % sizeof(std::uint64_t) == 0);
  auto* const to = reinterpret_cast<std::uint64_t*>(&into);
  const auto* const what = reinterpret_cast<const std::uint64_t*>(&from);
  for (std::size_t i = 0; i < sizeof(T) / sizeof(std::uint64_t); ++i) to[i] += weight * what[i];
}

}  // namespace verbscope::driver
