// Fibers: the threads of the simulated nodes, on the stack switches of Boost.Context. A fiber runs until it waits for a
// time of the engine's clock or parks until it is woken.
#pragma once

#include <boost/context/fiber.hpp>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>

#include "nic_sim/time/engine.hpp"

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

// Informs AddressSanitizer and ThreadSanitizer about a switch of stacks; does nothing in other builds. Call leave()
// before the switch on the old stack, and arrive() after it on the new one.
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

class Fiber {
 public:
  Fiber(Engine& engine, std::function<void()> body);
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;
  ~Fiber() { end(); }

  // From inside the fiber: runs all events due before `when`. The engine's clock is `when` afterwards.
  void wait_until(Picos when);

  // From inside the fiber: sleeps until wake_at(). The engine's clock is the time of the wake afterwards.
  void park();

  // Ends a park at `when`. If called several times, the earliest time counts. No effect if the fiber is not parked.
  void wake_at(Picos when);

  // From outside: runs the fiber until it waits, parks or ends. Rethrows exceptions of its body. No effect if it has
  // ended.
  void resume();

  // From outside: ends the fiber by an exception in its body, which destroys the objects on its stack. No effect if it
  // has ended.
  void end();

  bool finished() const { return finished_; }

 private:
  struct Abandoned {};  // thrown out of suspend() by end()

  static void resume_event(void* fiber, std::uint64_t);
  static void end_park(void* fiber, std::uint64_t park);
  boost::context::fiber enter(boost::context::fiber&& caller);
  void switch_to();
  void suspend();

  // Members that each switch accesses, in one cache line.
  Engine& engine_;
  Stack stack_;
  boost::context::fiber context_;  // where the fiber continues
  boost::context::fiber caller_;   // where resume() continues
  std::exception_ptr error_;
  Picos wake_ = Picos::max();  // end of this park
  std::uint32_t parks_ = 0;    // number of parks; events that end an earlier one are void
  bool parked_ = false;
  bool finished_ = false;
  bool abandoned_ = false;
  [[no_unique_address]] StackSwitch inside_;
  std::function<void()> body_;
};

}  // namespace verbscope::sim
