// Informs AddressSanitizer and ThreadSanitizer about stacks and switches between them; does nothing in other builds.
// Around a switch, call leave() before it on the old stack and arrive() after it on the new one.
#pragma once

#include <cstddef>

#if defined(VERBSCOPE_ADDRESS_SANITIZER)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#elif defined(VERBSCOPE_THREAD_SANITIZER)
#include <sanitizer/tsan_interface.h>
#endif

namespace verbscope::sim {

// A stack, and its handle in ThreadSanitizer.
struct Stack {
  const void* bottom = nullptr;
  std::size_t size = 0;
#if defined(VERBSCOPE_THREAD_SANITIZER)
  void* fiber = nullptr;
  void* caller = nullptr;  // the fiber that last switched to it
#endif
};

inline Stack new_stack(const void* bottom, std::size_t size) {
  Stack stack{.bottom = bottom, .size = size};
#if defined(VERBSCOPE_THREAD_SANITIZER)
  stack.fiber = __tsan_create_fiber(0);
#endif
  return stack;
}

// Call when the memory of a stack is freed: removes the poison of frames that never returned, for the next user of
// these addresses.
inline void forget_stack([[maybe_unused]] const Stack& stack) {
#if defined(VERBSCOPE_ADDRESS_SANITIZER)
  ASAN_UNPOISON_MEMORY_REGION(stack.bottom, stack.size);
#elif defined(VERBSCOPE_THREAD_SANITIZER)
  __tsan_destroy_fiber(stack.fiber);
#endif
}

class StackSwitch {
 public:
  // To `target`.
  void leave([[maybe_unused]] Stack& target) {
#if defined(VERBSCOPE_ADDRESS_SANITIZER)
    __sanitizer_start_switch_fiber(&fake_stack_, target.bottom, target.size);
#elif defined(VERBSCOPE_THREAD_SANITIZER)
    target.caller = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(target.fiber, 0);
#endif
  }

  void arrive() {
#if defined(VERBSCOPE_ADDRESS_SANITIZER)
    __sanitizer_finish_switch_fiber(fake_stack_, &from_.bottom, &from_.size);
#endif
  }

  // Switches from `own` back to the stack from which the last arrive() came. `last`: this stack will never run again.
  void leave_back([[maybe_unused]] const Stack& own, [[maybe_unused]] bool last = false) {
#if defined(VERBSCOPE_ADDRESS_SANITIZER)
    __sanitizer_start_switch_fiber(last ? nullptr : &fake_stack_, from_.bottom, from_.size);
#elif defined(VERBSCOPE_THREAD_SANITIZER)
    __tsan_switch_to_fiber(own.caller, 0);
#endif
  }

 private:
#if defined(VERBSCOPE_ADDRESS_SANITIZER)
  void* fake_stack_ = nullptr;
  Stack from_;
#endif
};

}  // namespace verbscope::sim
