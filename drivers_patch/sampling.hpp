// The time from a post to its completion, of a request now and then. The completion is found by its number: those of a
// QP's sends come in the order of posting. Where they cannot be counted, no time is taken: QPs that several threads
// post to or poll, and those that had an error or a reset.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "drivers_patch/layout.hpp"

namespace verbscope::driver {

// Requests between two of which the time is taken, a power of two; of those that are posted alone, requests of a shape.
inline constexpr std::int64_t kSampleEvery = 1024;

// This thread is about to post a list. `signaled`: some of its requests are; `uncounted`: so many that are signaled are
// not in `counts` yet. Yields whether the time of the last of them is taken.
bool sample_post(QpCounts& counts, bool signaled, std::uint64_t uncounted);
constexpr bool is_atomic(ibv_wr_opcode opcode) {
  return opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}
// An atomic at this address is about to be posted. The first so many that are posted alone are noted, then samples.
void note_atomic(QpCounts& counts, std::uint64_t remote_address);
inline constexpr std::uint64_t kAtomicsNoted = 64;
inline constexpr int kAtomicsOfList = 16;  // that are noted of one list
// A QP of READs and atomics is about to have so many more under way, of which some are signaled.
void sample_reads(QpCounts& counts, std::uint64_t uncounted, std::uint64_t uncounted_signaled);
// What of these is to be known of a list that begins with `first`, which has been counted.
void sample_requests(QpCounts& counts, const ibv_send_wr& first);

// The list was not posted.
void forget_sample(QpCounts& counts);
// This thread has polled completions of sends of the QP, one of whose requests has its time taken.
void sample_completed(QpCounts& counts);
// The first completions that this thread polls of the QP.
void note_poller(QpCounts& counts);

}  // namespace verbscope::driver
