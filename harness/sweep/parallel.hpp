// Independent pieces of work on a few threads.
#pragma once

#include <cstddef>
#include <functional>

namespace verbscope {

// Calls task(0) to task(count - 1), each once, at most `jobs` at the same time, and starts them in this order. When one
// throws, no further one is started; the first exception is thrown again when those that run have ended.
void run_parallel(std::size_t count, std::size_t jobs, const std::function<void(std::size_t)>& task);

// The number of pieces that run at the same time when a person asks for `jobs`; 0 means one for each CPU.
std::size_t job_count(int jobs);

}  // namespace verbscope
