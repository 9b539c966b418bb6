// Counts completions as they are polled.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "drivers_patch/layout.hpp"
#include "drivers_patch/sampling.hpp"
#include "drivers_patch/shapes.hpp"

namespace verbscope::driver {

// Call after this thread polled the queue and found it empty.
void count_empty(PollCounts& counts, const void* cq);

// Counts a failed completion. Its opcode is undefined.
void count_failed(QpCounts& counts, ibv_wc_status status);

// Counts completions of sends. `completions` > 0.
inline void count_sent(QpCounts& counts, std::uint64_t completions) {
  if (counts.send_completions == 0) [[unlikely]]
    note_poller(counts);
  add(counts.send_completions, completions);
  if (counts.qp->sample_target.load(std::memory_order_relaxed) != 0) [[unlikely]]
    sample_completed(counts);
}

// Counts a RECV with `bytes` in its buffer; a WRITE with immediate has none there.
inline void count_recv(QpCounts& counts, ibv_wc_opcode opcode, std::uint32_t bytes) {
  const std::uint64_t shape = opcode == IBV_WC_RECV_RDMA_WITH_IMM ? kWithoutMemory : bytes;
  if (shape == counts.last_received) [[likely]]
    return add(*counts.last_received_count);
  count_received(counts, shape, 1);
}

}  // namespace verbscope::driver
