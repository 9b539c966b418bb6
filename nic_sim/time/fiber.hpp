// Fibers: the threads of the simulated nodes, on the stack switches of Boost.Context. A fiber runs until it waits for a
// time of the engine's clock or parks until it is woken.
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
  // Ends an unfinished fiber by an exception in its body, which destroys the objects on its stack.
  ~Fiber();

  // From inside the fiber: runs all events due before `when`. The engine's clock is `when` afterwards.
  void wait_until(Picos when);

  // From inside the fiber: sleeps until wake_at(). The engine's clock is the time of the wake afterwards.
  void park();

  // Ends a park at `when`. If called several times, the earliest time counts. No effect if the fiber is not parked.
  void wake_at(Picos when);

  // From outside: runs the fiber until it waits, parks or ends. Rethrows exceptions of its body.
  void resume();

  bool finished() const { return finished_; }

 private:
  struct Abandoned {};  // thrown out of suspend() when the fiber is destroyed

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
