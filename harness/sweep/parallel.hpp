// Runs independent tasks on a few threads.
#pragma once

#include <cstddef>
#include <functional>

namespace verbscope {

// Calls task(0) to task(count - 1) once each, in this order, at most `jobs` at the same time. After an exception,
// starts no further task, waits for the running ones, and rethrows the first exception.
void run_parallel(std::size_t count, std::size_t jobs, const std::function<void(std::size_t)>& task);

// The number of tasks at the same time for the option `jobs`: 0 means one per CPU.
std::size_t job_count(int jobs);

}  // namespace verbscope
