#include "tests/verbs/count_allocations.hpp"

#include <cstdlib>
#include <new>

#ifdef VERBSCOPE_COUNT_ALLOCATIONS

namespace {
thread_local std::size_t allocations = 0;
}

std::size_t verbscope::allocations_of_this_thread() {
  return allocations;
}

void* operator new(std::size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
// Without this one AddressSanitizer's own would allocate what the operators below free, as std::stable_sort does.
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(size);
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

#endif
