// Fibers: the threads of the simulated nodes, on the stack switches of Boost.Context. One scheduler per simulation; a
// fiber runs until it waits for a moment of the engine's clock or parks until somebody wakes it.
#pragma once

#include <boost/context/fiber.hpp>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <vector>

#include "nic_sim/time/engine.hpp"
#include "nic_sim/time/stack_switch.hpp"

namespace verbscope::sim {

class Fiber {
 public:
  Fiber(Engine& engine, std::function<void()> body);
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;
  // A fiber that has not finished leaves its body by an exception, so that what is on its stack is destroyed.
  ~Fiber();

  // From inside the fiber: everything due up to `when` happens first; on return the engine's clock is `when`.
  void wait_until(Picos when);

  // From inside the fiber: sleeps until wake_at(); on return the engine's clock is the time it was woken for.
  void park();

  // Ends a park at `when`. Of several wakes of one park the earliest counts; a fiber that is not parked ignores it.
  void wake_at(Picos when);

  // From outside: runs the fiber until it waits, parks or ends. Rethrows what its body threw.
  void resume();

  bool finished() const { return finished_; }

 private:
  struct Abandoned {};  // thrown out of suspend() when the fiber is destroyed

  static void resume_event(void* fiber, std::uint64_t);
  static void end_park(void* fiber, std::uint64_t park);
  boost::context::fiber enter(boost::context::fiber&& caller);
  void switch_to();
  void suspend();

  // Every switch looks at these, in one cache line.
  Engine& engine_;
  Stack stack_;
  boost::context::fiber context_;  // where the fiber goes on
  boost::context::fiber caller_;   // where resume() goes on
  std::exception_ptr error_;
  Picos wake_ = Picos::max();  // when this park will end
  std::uint32_t parks_ = 0;    // so far: an event that was to end an earlier one is void
  bool parked_ = false;
  bool finished_ = false;
  bool abandoned_ = false;
  [[no_unique_address]] StackSwitch inside_;
  std::function<void()> body_;
};

}  // namespace verbscope::sim
