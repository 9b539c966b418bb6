// The number of times that the calling thread has allocated memory with `new`: the test binary's own operator new
// counts. ThreadSanitizer brings one that cannot be replaced, so tests that count are not built with it.
#pragma once

#ifndef VERBSCOPE_THREAD_SANITIZER
#define VERBSCOPE_COUNT_ALLOCATIONS 1
#endif

#include <cstddef>

namespace verbscope {

std::size_t allocations_of_this_thread();

}  // namespace verbscope
