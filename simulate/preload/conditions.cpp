// Conditions, semaphores, barriers, pthread_once(3), and the futexes of programs: waiting in virtual time for what
// another thread of the process announces.
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <threads.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "simulate/preload/clock.hpp"
#include "simulate/preload/locks.hpp"
#include "simulate/preload/real.hpp"
#include "simulate/preload/session.hpp"
#include "simulate/preload/waiting.hpp"

namespace verbscope::simulate {
namespace {

// Of the C library: bits of `__wrefs` of a condition.
constexpr unsigned kShared = 1, kMonotonic = 2;

// The C library's semaphore.
struct Semaphore {
  std::uint64_t value;
  std::int32_t shared;
};

// The memory of a barrier: the C library's part, from which only the count is read, and this library's own state.
struct Barrier {
  std::uint32_t of_library[2];
  std::uint32_t count;
  std::int32_t shared;
  std::uint32_t also_of_library;
  std::atomic<std::uint32_t> arrived;
  std::atomic<std::uint32_t> round;
};
static_assert(sizeof(Barrier) <= sizeof(pthread_barrier_t));

constexpr std::int64_t kLookAgainPs = 10'000'000;
constexpr int kOnceInProgress = 1;  // a bit of the C library's pthread_once_t

bool is_own(const pthread_cond_t& condition) {
  return simulated() && (condition.__data.__wrefs & kShared) == 0;
}
bool is_own(sem_t* semaphore) {
  return simulated() && reinterpret_cast<Semaphore*>(semaphore)->shared == 0;
}
Barrier& words_of(pthread_barrier_t* barrier) {
  return *reinterpret_cast<Barrier*>(barrier);
}

int wait(pthread_cond_t* condition, pthread_mutex_t* mutex, std::int64_t deadline) {
  int error = 0;
  {
    const Waiting waiting(condition);
    if (const int refused = unlock_mutex(mutex); refused != 0) return refused;
    error = waiting.wait(deadline);
  }
  const int locked = lock_mutex(mutex);
  if (error == EINTR) pthread_testcancel();
  return locked != 0 ? locked : error == ETIMEDOUT ? ETIMEDOUT : 0;
}

int wait(sem_t* semaphore, std::int64_t deadline) {
  const int saved = errno;
  charge(kReadClockPs);
  const auto taken = [semaphore] { return REAL(sem_trywait)(semaphore) == 0; };
  const int error = taken() ? 0 : wait_until_or_signal(semaphore, deadline, taken);
  if (error == EINTR) pthread_testcancel();
  errno = error == 0 ? saved : error;
  return error == 0 ? 0 : -1;
}

// Waits as futex(2). Another process may change a word without this library's notice: then it is looked at again, after
// longer and longer spans.
int wait_for_futex(const std::uint32_t* word, std::uint32_t expected, std::int64_t deadline, bool is_private) {
  constexpr std::int64_t kFirstSpanPs = 10'000'000, kLastSpanPs = 10'000'000'000;
  const Waiting waiting(word);
  std::int64_t span = is_private ? kNever : kFirstSpanPs;
  for (;; span = std::min(span, kLastSpanPs / 2) * 2) {
    const std::int64_t until = std::min(deadline, after(now_ps(0), span));
    const int error = wait_on(word, word, expected, until);
    if (error != ETIMEDOUT || until == deadline) return error;
  }
}

// futex(2) of threads. ENOSYS: it is for the operating system.
int own_futex(const std::uint32_t* word, int operation, std::uint32_t value, const timespec* time, std::uint32_t bits) {
  if (!simulated()) return ENOSYS;
  const bool is_private = (operation & FUTEX_PRIVATE_FLAG) != 0;
  const clockid_t clock = (operation & FUTEX_CLOCK_REALTIME) != 0 ? CLOCK_REALTIME : CLOCK_MONOTONIC;
  const int command = operation & FUTEX_CMD_MASK;
  if (command == FUTEX_WAKE || (command == FUTEX_WAKE_BITSET && bits == FUTEX_BITSET_MATCH_ANY)) {
    wake(word, value);
    return ENOSYS;  // the real one too, for those that wait by other means
  }
  const bool absolute = command == FUTEX_WAIT_BITSET;
  if (command != FUTEX_WAIT && !(absolute && bits == FUTEX_BITSET_MATCH_ANY)) return ENOSYS;
  if (time != nullptr && !valid(*time)) return EINVAL;
  std::int64_t deadline = kNever;
  if (time != nullptr) deadline = absolute ? when_shown(clock, *time) : after(now_ps(0), picos(*time));
  return wait_for_futex(word, value, deadline, is_private);
}

}  // namespace
}  // namespace verbscope::simulate

using namespace verbscope::simulate;

EXPORTED int pthread_cond_wait(pthread_cond_t* condition, pthread_mutex_t* mutex) {
  return is_own(*condition) ? wait(condition, mutex, kNever) : REAL(pthread_cond_wait)(condition, mutex);
}
EXPORTED int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                                    const timespec* time) {
  if (!is_own(*condition)) return REAL(pthread_cond_clockwait)(condition, mutex, clock, time);
  return valid(*time) ? wait(condition, mutex, when_shown(clock, *time)) : EINVAL;
}
EXPORTED int pthread_cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* mutex, const timespec* time) {
  if (!is_own(*condition)) return REAL(pthread_cond_timedwait)(condition, mutex, time);
  const bool monotonic = (condition->__data.__wrefs & kMonotonic) != 0;
  return pthread_cond_clockwait(condition, mutex, monotonic ? CLOCK_MONOTONIC : CLOCK_REALTIME, time);
}
EXPORTED int pthread_cond_signal(pthread_cond_t* condition) {
  if (!is_own(*condition)) return REAL(pthread_cond_signal)(condition);
  wake(condition, 1);
  return 0;
}
EXPORTED int pthread_cond_broadcast(pthread_cond_t* condition) {
  if (!is_own(*condition)) return REAL(pthread_cond_broadcast)(condition);
  wake(condition, kAll);
  return 0;
}

EXPORTED int cnd_wait(cnd_t* condition, mtx_t* mutex) {
  const int error =
      pthread_cond_wait(reinterpret_cast<pthread_cond_t*>(condition), reinterpret_cast<pthread_mutex_t*>(mutex));
  return error == 0 ? thrd_success : thrd_error;
}
EXPORTED int cnd_timedwait(cnd_t* condition, mtx_t* mutex, const timespec* time) {
  const int error = pthread_cond_timedwait(reinterpret_cast<pthread_cond_t*>(condition),
                                           reinterpret_cast<pthread_mutex_t*>(mutex), time);
  return error == 0 ? thrd_success : error == ETIMEDOUT ? thrd_timedout : thrd_error;
}
EXPORTED int cnd_signal(cnd_t* condition) {
  pthread_cond_signal(reinterpret_cast<pthread_cond_t*>(condition));
  return thrd_success;
}
EXPORTED int cnd_broadcast(cnd_t* condition) {
  pthread_cond_broadcast(reinterpret_cast<pthread_cond_t*>(condition));
  return thrd_success;
}

EXPORTED int sem_wait(sem_t* semaphore) {
  return is_own(semaphore) ? wait(semaphore, kNever) : REAL(sem_wait)(semaphore);
}
EXPORTED int sem_trywait(sem_t* semaphore) {
  const int result = REAL(sem_trywait)(semaphore);
  if (result != 0 && simulated()) now_ps(kReadClockPs);
  return result;
}
EXPORTED int sem_clockwait(sem_t* semaphore, clockid_t clock, const timespec* time) {
  if (!is_own(semaphore)) return REAL(sem_clockwait)(semaphore, clock, time);
  return valid(*time) ? wait(semaphore, when_shown(clock, *time)) : by_errno(EINVAL);
}
EXPORTED int sem_timedwait(sem_t* semaphore, const timespec* time) {
  return sem_clockwait(semaphore, CLOCK_REALTIME, time);
}
EXPORTED int sem_post(sem_t* semaphore) {
  const int result = REAL(sem_post)(semaphore);
  if (result == 0) wake(semaphore, 1);
  return result;
}

EXPORTED int pthread_barrier_init(pthread_barrier_t* barrier, const pthread_barrierattr_t* attributes, unsigned count) {
  const int error = REAL(pthread_barrier_init)(barrier, attributes, count);
  if (error == 0) words_of(barrier).arrived = words_of(barrier).round = 0;
  return error;
}
EXPORTED int pthread_barrier_wait(pthread_barrier_t* barrier) {
  Barrier& of = words_of(barrier);
  if (!simulated() || of.shared != 0) return REAL(pthread_barrier_wait)(barrier);
  charge(kReadClockPs);
  const std::uint32_t round = of.round.load();
  if (of.arrived.fetch_add(1) + 1 == of.count) {
    of.arrived = 0;
    of.round.fetch_add(1);
    wake(barrier, kAll);
    return PTHREAD_BARRIER_SERIAL_THREAD;
  }
  wait_until(barrier, kNever, [&of, round] { return of.round.load() != round; });
  return 0;
}

EXPORTED int pthread_once(pthread_once_t* once, void (*run)()) {
  const auto in_progress = [once] { return (__atomic_load_n(once, __ATOMIC_ACQUIRE) & kOnceInProgress) != 0; };
  // An exception of the program's function ends the call without a wake: this library must not take part in unwinding.
  while (simulated() && in_progress()) {
    wait_until(once, now_ps(0) + kLookAgainPs, [&] { return !in_progress(); });
  }
  const int error = REAL(pthread_once)(once, run);
  wake(once, kAll);
  return error;
}
EXPORTED void call_once(once_flag* once, void (*run)()) {
  pthread_once(reinterpret_cast<pthread_once_t*>(once), run);
}

// Futexes of programs: std::atomic::wait of C++20, and what other languages build their locks on.
EXPORTED long syscall(long number, ...) {
  long arguments[6];
  va_list list;
  va_start(list, number);
  for (long& argument : arguments) argument = va_arg(list, long);
  va_end(list);
  if (number == SYS_futex) {
    const int error =
        own_futex(reinterpret_cast<const std::uint32_t*>(arguments[0]), static_cast<int>(arguments[1]),
                  static_cast<std::uint32_t>(arguments[2]), reinterpret_cast<const timespec*>(arguments[3]),
                  static_cast<std::uint32_t>(arguments[5]));
    if (error != ENOSYS) return error == 0 ? 0 : by_errno(error);
  }
  const long result =
      system_call(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], arguments[5]);
  return result < 0 && result > -4096 ? by_errno(static_cast<int>(-result)) : result;
}
