// The number of times that the calling thread has allocated memory with `new` (the test binary's own operator new
// counts).
#pragma once

#include <cstddef>

namespace verbscope {

std::size_t allocations_of_this_thread();

}  // namespace verbscope
