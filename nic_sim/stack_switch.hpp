// Tells AddressSanitizer about stacks and the switches between them; nothing in other builds. Usage around a switch, as
// the sanitizer's interface asks: leave() before it on the old stack, arrive() after it on the new one.
#pragma once

#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace verbscope::sim {

struct StackBounds {
  const void* bottom = nullptr;
  std::size_t size = 0;
};

// The memory of a stack is given back: what the frames that never returned left forbidden there is allowed again, for
// whoever gets these addresses next.
inline void forget_stack([[maybe_unused]] const StackBounds& stack) {
#if defined(__SANITIZE_ADDRESS__)
  ASAN_UNPOISON_MEMORY_REGION(stack.bottom, stack.size);
#endif
}

class StackSwitch {
 public:
  // `last`: this stack will never run again.
  void leave([[maybe_unused]] const StackBounds& target, [[maybe_unused]] bool last = false) {
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(last ? nullptr : &fake_stack_, target.bottom, target.size);
#endif
  }

  void arrive() {
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(fake_stack_, &from_.bottom, &from_.size);
#endif
  }
  // Back to the stack from which the last arrive() came.
  void leave_back([[maybe_unused]] bool last = false) {
#if defined(__SANITIZE_ADDRESS__)
    leave(from_, last);
#endif
  }

 private:
#if defined(__SANITIZE_ADDRESS__)
  void* fake_stack_ = nullptr;
  StackBounds from_;
#endif
};

}  // namespace verbscope::sim
