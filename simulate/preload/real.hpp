// The functions of the C library that this library stands before.
#pragma once

#include <dlfcn.h>

#include <atomic>

#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace verbscope::simulate {

// The next definition of `name` after this library's. Found once; a C++ guard might itself wait for a lock.
template <class Function>
Function* real(std::atomic<void*>& found, const char* name) {
  void* function = found.load(std::memory_order_relaxed);
  if (function == nullptr) {
    function = dlsym(RTLD_NEXT, name);
    found.store(function, std::memory_order_relaxed);
  }
  return reinterpret_cast<Function*>(function);
}

}  // namespace verbscope::simulate

// The C library's function NAME.
#define REAL(NAME)                                                             \
  ([] {                                                                        \
    static constinit std::atomic<void*> found_##NAME = nullptr;                \
    return ::verbscope::simulate::real<decltype(::NAME)>(found_##NAME, #NAME); \
  }())
