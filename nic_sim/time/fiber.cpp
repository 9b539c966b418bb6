#include "nic_sim/time/fiber.hpp"

#include <algorithm>
#include <boost/context/protected_fixedsize_stack.hpp>

namespace verbscope::sim {
namespace {

constexpr std::size_t kStackBytes = 256 * 1024;  // benchmark threads need little stack; only pages in use take memory

// Boost's guarded stack, which records its address.
class RecordedStack {
 public:
  explicit RecordedStack(Stack& record) : record_(record), stack_(kStackBytes) {}
  boost::context::stack_context allocate() {
    boost::context::stack_context context = stack_.allocate();
    record_ = new_stack(static_cast<char*>(context.sp) - context.size, context.size);
    return context;
  }
  void deallocate(boost::context::stack_context& context) {
    forget_stack(record_);
    stack_.deallocate(context);
  }

 private:
  Stack& record_;
  boost::context::protected_fixedsize_stack stack_;
};

}  // namespace

Fiber::Fiber(Engine& engine, std::function<void()> body)
    : engine_(engine),
      context_(std::allocator_arg, RecordedStack(stack_),
               [this](boost::context::fiber&& caller) { return enter(std::move(caller)); }),
      body_(std::move(body)) {}

boost::context::fiber Fiber::enter(boost::context::fiber&& caller) {
  inside_.arrive();
  caller_ = std::move(caller);
  try {
    if (!abandoned_) body_();
  } catch (const Abandoned&) {  // end() was called while this fiber slept
  } catch (...) {
    error_ = std::current_exception();
  }
  finished_ = true;
  inside_.leave_back(stack_, true);
  return std::move(caller_);
}

void Fiber::end() {
  abandoned_ = true;
  if (!finished_) switch_to();
}

void Fiber::switch_to() {
  StackSwitch outside;
  outside.leave(stack_);
  context_ = std::move(context_).resume();
  outside.arrive();
}

void Fiber::resume() {
  if (finished_) return;
  switch_to();
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void Fiber::suspend() {
  inside_.leave_back(stack_);
  caller_ = std::move(caller_).resume();
  inside_.arrive();
  if (abandoned_) throw Abandoned{};
}

void Fiber::resume_event(void* fiber, std::uint64_t) {
  static_cast<Fiber*>(fiber)->resume();
}

void Fiber::wait_until(Picos when) {
  if (when.count() < std::min(engine_.next_time(), engine_.horizon())) {  // no event before it: stay on the stack
    engine_.advance_to(when);
    return;
  }
  engine_.schedule(when, &resume_event, this);
  suspend();
}

void Fiber::end_park(void* object, std::uint64_t park) {
  Fiber& fiber = *static_cast<Fiber*>(object);
  if (!fiber.parked_ || fiber.parks_ != park) return;  // an earlier wake ended it
  fiber.parked_ = false;
  fiber.resume();
}

void Fiber::park() {
  ++parks_;
  wake_ = Picos::max();
  parked_ = true;
  suspend();
}

void Fiber::wake_at(Picos when) {
  if (!parked_ || when >= wake_) return;
  wake_ = when;
  engine_.schedule(when, &end_park, this, parks_);
}

}  // namespace verbscope::sim
