// Samples the time from a post to its completion. The completion is found by counting, since sends of a QP complete in
// the order of posting. QPs that several threads post to or poll, and those that had an error or a reset, are not
// sampled.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "drivers_patch/layout.hpp"

namespace verbscope::driver {

// One request in this many is sampled; a power of two. Requests posted singly are counted per shape.
inline constexpr std::int64_t kSampleEvery = 1024;

// Call before posting a list. `signaled`: it has a signaled request. `uncounted`: signaled requests of it that `counts`
// does not contain yet. Returns true if the list's last signaled request is sampled.
bool sample_post(QpCounts& counts, bool signaled, std::uint64_t uncounted);
constexpr bool is_atomic(ibv_wr_opcode opcode) {
  return opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}
// Call before posting an atomic on this address. The first kAtomicsNoted that are posted singly are recorded, and later
// samples.
void note_atomic(QpCounts& counts, std::uint64_t remote_address);
inline constexpr std::uint64_t kAtomicsNoted = 64;
inline constexpr int kAtomicsOfList = 16;  // recorded per list
// Estimates the outstanding READs and atomics of a QP and keeps the maximum. `uncounted`, `uncounted_signaled`:
// requests that are being posted and are not in `counts` yet.
void sample_reads(QpCounts& counts, std::uint64_t uncounted, std::uint64_t uncounted_signaled);
// Records atomics and outstanding READs of a list that begins with `first` and has been counted.
void sample_requests(QpCounts& counts, const ibv_send_wr& first);

// Call if the list was not posted.
void forget_sample(QpCounts& counts);
// Call after polling completions of sends of a QP with a pending sample.
void sample_completed(QpCounts& counts);
// Call at the first completion that this thread polls of the QP.
void note_poller(QpCounts& counts);

}  // namespace verbscope::driver
