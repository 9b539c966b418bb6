// The time from a post to its completion, of a request now and then. The completion is found by its number: those of a
// QP's sends come in the order of posting. Where they cannot be counted, no time is taken: QPs that several threads
// post to or poll, and those that had an error or a reset.
#pragma once

#include <cstdint>

#include "drivers_patch/layout.hpp"

namespace verbscope::driver {

// Requests between two of which the time is taken, a power of two; of those that are posted alone, requests of a shape.
inline constexpr std::int64_t kSampleEvery = 1024;

// This thread is about to post a list. `signaled`: some of its requests are; `uncounted`: so many that are signaled are
// not in `counts` yet. Yields whether the time of the last of them is taken.
bool sample_post(QpCounts& counts, bool signaled, std::uint64_t uncounted);
// The list was not posted.
void forget_sample(QpCounts& counts);
// This thread has polled completions of sends of the QP, one of whose requests has its time taken.
void sample_completed(QpCounts& counts);
// The first completions that this thread polls of the QP.
void note_poller(QpCounts& counts);

}  // namespace verbscope::driver
