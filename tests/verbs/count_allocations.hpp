// How often the calling thread allocated memory with `new` since it began (the test binary's own operator new counts).
#pragma once

#include <cstddef>

namespace verbscope {

std::size_t allocations_of_this_thread();

}  // namespace verbscope
