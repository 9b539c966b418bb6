// Begin, end and join of threads. A new thread is known to the simulator before the one that creates it goes on, so
// that the order of threads does not depend on the operating system.
#include "simulate/preload/threads.hpp"

#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <threads.h>

#include <cerrno>

#include "simulate/preload/clock.hpp"
#include "simulate/preload/real.hpp"
#include "simulate/preload/session.hpp"
#include "simulate/preload/waiting.hpp"

namespace verbscope::simulate {
namespace {

// Assumed CPU time of pthread_create(3), and of sched_yield(2), which programs call in loops.
constexpr std::int64_t kCreatePs = 10'000'000;
constexpr std::int64_t kYieldPs = 300'000;

enum Life : std::uint32_t { foreign, running, ended };

// Of each thread. Others find it beside the thread's pthread_t, from which the variables of a thread are at the same
// distance in all threads. It is valid until the thread is joined.
struct Thread {
  std::atomic<std::uint32_t> life;
  std::int32_t id;  // for the operating system
};
thread_local constinit Thread self __attribute__((tls_model("initial-exec"))) = {foreign, 0};

Thread& of(pthread_t thread) {
  const auto distance = reinterpret_cast<std::uint64_t>(&self) - pthread_self();
  return *reinterpret_cast<Thread*>(thread + distance);
}

// The destructor of a key runs at the thread's end, also after pthread_exit and cancellation. In the last round the
// program's destructors have run.
pthread_key_t key;
void end_thread(void* round) {
  const auto next = reinterpret_cast<std::uint64_t>(round) + 1;
  if (next <= PTHREAD_DESTRUCTOR_ITERATIONS && pthread_setspecific(key, reinterpret_cast<void*>(next)) == 0) return;
  // The simulator wakes those that join: they wait for the end in the operating system, where it must come soon.
  self.life.store(ended, std::memory_order_seq_cst);
  bucket_of(&self).changes.fetch_add(1, std::memory_order_seq_cst);
  leave(&self);
}

struct Start {
  void* (*run)(void*);
  void* argument;
  Channel* channel;
  std::int64_t now_ps;
  std::atomic<std::uint32_t> begun;
};

void* begin_thread(void* argument) {
  auto& start = *static_cast<Start*>(argument);
  const auto run = start.run;
  void* const own_argument = start.argument;
  const auto begun = [](void* at) {
    auto& word = static_cast<Start*>(at)->begun;
    word.store(1, std::memory_order_release);
    futex_wake(word);
  };
  adopt_channel(*start.channel, start.now_ps, begun, &start);
  return run(own_argument);
}

int create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*), void* argument) {
  Channel* const reserved = reserve_channel();
  if (reserved == nullptr) return EAGAIN;
  Start start{.run = run, .argument = argument, .channel = reserved, .now_ps = now_ps(kCreatePs), .begun = 0};
  const Patience patience;
  const int error = REAL(pthread_create)(thread, attributes, &begin_thread, &start);
  if (error != 0) {
    give_back(*reserved);
    return error;
  }
  while (start.begun.load(std::memory_order_acquire) == 0) futex_wait(start.begun, 0U);
  return 0;
}

bool has_ended(const Thread& thread) {
  return thread.life.load() == ended;
}

// Until the thread has ended, after which the C library's function does not wait long. Returns 0 or ETIMEDOUT.
int await_end(pthread_t thread, std::int64_t deadline) {
  if (!simulated() || pthread_equal(thread, pthread_self()) || of(thread).life.load() == foreign) return 0;
  Thread& other = of(thread);
  for (;;) {
    const int error = wait_until_or_signal(&other, deadline, [&other] { return has_ended(other); });
    if (error != EINTR) return error;
    pthread_testcancel();
  }
}

int join_ended(pthread_t thread, void** result) {
  if (!simulated()) return REAL(pthread_join)(thread, result);
  const Patience patience;
  return REAL(pthread_join)(thread, result);
}

int join_by(pthread_t thread, void** result, clockid_t clock, const timespec* time) {
  if (!valid(*time)) return EINVAL;
  const int error = await_end(thread, when_shown(clock, *time));
  return error == 0 ? join_ended(thread, result) : error;
}

}  // namespace

void end_with_thread() {
  static const int created = pthread_key_create(&key, &end_thread);
  if (created == 0) pthread_setspecific(key, reinterpret_cast<void*>(std::uint64_t{1}));
  self.id = own_channel().thread;
  self.life.store(running);
}

}  // namespace verbscope::simulate

using namespace verbscope::simulate;

EXPORTED int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*), void* argument) {
  return simulated() ? create(thread, attributes, run, argument)
                     : REAL(pthread_create)(thread, attributes, run, argument);
}

EXPORTED int thrd_create(thrd_t* thread, thrd_start_t run, void* argument) {
  // The result of the function is in the lower half of the register in which a pointer is returned.
  const auto run_as_posix = reinterpret_cast<void* (*)(void*)>(reinterpret_cast<void (*)()>(run));
  switch (pthread_create(thread, nullptr, run_as_posix, argument)) {
    case 0:
      return thrd_success;
    case EAGAIN:
      return thrd_nomem;
    default:
      return thrd_error;
  }
}

EXPORTED int pthread_join(pthread_t thread, void** result) {
  await_end(thread, kNever);
  return join_ended(thread, result);
}

EXPORTED int thrd_join(thrd_t thread, int* result) {
  void* value = nullptr;
  if (pthread_join(thread, &value) != 0) return thrd_error;
  if (result != nullptr) *result = static_cast<int>(reinterpret_cast<std::intptr_t>(value));
  return thrd_success;
}

EXPORTED int pthread_tryjoin_np(pthread_t thread, void** result) {
  if (!simulated() || of(thread).life.load() == foreign) return REAL(pthread_tryjoin_np)(thread, result);
  charge(kReadClockPs);
  return has_ended(of(thread)) ? join_ended(thread, result) : EBUSY;
}

EXPORTED int pthread_timedjoin_np(pthread_t thread, void** result, const timespec* time) {
  return simulated() ? join_by(thread, result, CLOCK_REALTIME, time) : REAL(pthread_timedjoin_np)(thread, result, time);
}

EXPORTED int pthread_clockjoin_np(pthread_t thread, void** result, clockid_t clock, const timespec* time) {
  return simulated() ? join_by(thread, result, clock, time) : REAL(pthread_clockjoin_np)(thread, result, clock, time);
}

// The wait of another thread ends at this virtual time, not when the operating system has run it.
EXPORTED int pthread_cancel(pthread_t thread) {
  const bool others = simulated() && !pthread_equal(thread, pthread_self());
  const int error = REAL(pthread_cancel)(thread);
  if (error == 0 && others) ask(Operation::interrupt, of(thread).id);
  return error;
}

EXPORTED int pthread_kill(pthread_t thread, int signal) {
  const bool others = simulated() && signal != 0 && !pthread_equal(thread, pthread_self());
  const int error = REAL(pthread_kill)(thread, signal);
  if (error == 0 && others) ask(Operation::interrupt, of(thread).id);
  return error;
}

EXPORTED int sched_yield() {
  if (!simulated()) return REAL(sched_yield)();
  now_ps(kYieldPs);
  return ask(Operation::spend);
}

EXPORTED void thrd_yield() {
  sched_yield();
}

EXPORTED int thrd_sleep(const timespec* span, timespec* rest) {
  if (nanosleep(span, rest) == 0) return 0;
  return errno == EINTR ? -1 : -2;
}
