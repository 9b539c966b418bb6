// Locks: each tries without waiting, as the C library does, and waits in virtual time. Robust locks and those that
// processes share are left to the C library, whose waiting the simulator does not see.
#include "simulate/preload/locks.hpp"

#include <pthread.h>
#include <threads.h>
#include <unistd.h>

#include <cerrno>

#include "simulate/preload/clock.hpp"
#include "simulate/preload/real.hpp"
#include "simulate/preload/session.hpp"
#include "simulate/preload/waiting.hpp"

namespace verbscope::simulate {
namespace {

// CPU time of an attempt, assumed. It must not be 0: threads look for others' progress in loops.
constexpr std::int64_t kTryPs = 20'000;

constexpr int kTypes = 3;          // of a mutex: PTHREAD_MUTEX_NORMAL and others
constexpr int kKinds = 127 | 128;  // bits of the kind that tell what it is; others are hints
constexpr int kPriorityInherits = 32;

bool is_own(const pthread_mutex_t& mutex) {
  return simulated() && (mutex.__data.__kind & kKinds & ~kPriorityInherits) <= kTypes;
}
bool is_own(const pthread_rwlock_t& lock) {
  return simulated() && lock.__data.__shared == 0;
}

// Until the attempt does not return EBUSY.
template <class Attempt>
int await_lock(const volatile void* lock, std::int64_t deadline, Attempt&& attempt) {
  charge(kTryPs);
  int error = attempt();
  if (error != EBUSY) return error;
  const auto ends = [&] { return (error = attempt()) != EBUSY; };
  return wait_until(const_cast<const void*>(lock), deadline, ends) == 0 ? error : ETIMEDOUT;
}

// An attempt that programs repeat.
int tried(int error) {
  if (error == EBUSY && simulated()) now_ps(kTryPs);
  return error;
}

template <class Lock>
int unlocked(Lock* lock, std::uint32_t count, int error) {
  if (error == 0) wake(const_cast<const void*>(static_cast<const volatile void*>(lock)), count);
  return error;
}

int lock(pthread_mutex_t* mutex, std::int64_t deadline) {
  return await_lock(mutex, deadline, [mutex] {
    const int error = REAL(pthread_mutex_trylock)(mutex);
    const bool by_itself = error == EBUSY && (mutex->__data.__kind & kTypes) == PTHREAD_MUTEX_ERRORCHECK &&
                           mutex->__data.__owner == own_channel().thread;
    return by_itself ? EDEADLK : error;
  });
}

int lock_for_reading(pthread_rwlock_t* lock, std::int64_t deadline) {
  return await_lock(lock, deadline, [lock] {
    const int error = REAL(pthread_rwlock_tryrdlock)(lock);
    return error == EBUSY && lock->__data.__cur_writer == own_channel().thread ? EDEADLK : error;
  });
}

int lock_for_writing(pthread_rwlock_t* lock, std::int64_t deadline) {
  return await_lock(lock, deadline, [lock] {
    const int error = REAL(pthread_rwlock_trywrlock)(lock);
    return error == EBUSY && lock->__data.__cur_writer == own_channel().thread ? EDEADLK : error;
  });
}

int by_time(clockid_t clock, const timespec* time, auto&& lock) {
  return valid(*time) ? lock(when_shown(clock, *time)) : EINVAL;
}

int c11(int error) {
  switch (error) {
    case 0:
      return thrd_success;
    case EBUSY:
      return thrd_busy;
    case ETIMEDOUT:
      return thrd_timedout;
    default:
      return thrd_error;
  }
}
pthread_mutex_t* posix(mtx_t* mutex) {
  return reinterpret_cast<pthread_mutex_t*>(mutex);
}

}  // namespace

int lock_mutex(pthread_mutex_t* mutex) {
  return is_own(*mutex) ? lock(mutex, kNever) : REAL(pthread_mutex_lock)(mutex);
}

int unlock_mutex(pthread_mutex_t* mutex) {
  return unlocked(mutex, 1, REAL(pthread_mutex_unlock)(mutex));
}

}  // namespace verbscope::simulate

using namespace verbscope::simulate;

EXPORTED int pthread_mutex_lock(pthread_mutex_t* mutex) {
  return lock_mutex(mutex);
}
EXPORTED int pthread_mutex_trylock(pthread_mutex_t* mutex) {
  return tried(REAL(pthread_mutex_trylock)(mutex));
}
EXPORTED int pthread_mutex_unlock(pthread_mutex_t* mutex) {
  return unlock_mutex(mutex);
}
EXPORTED int pthread_mutex_clocklock(pthread_mutex_t* mutex, clockid_t clock, const timespec* time) {
  if (!is_own(*mutex)) return REAL(pthread_mutex_clocklock)(mutex, clock, time);
  return by_time(clock, time, [mutex](std::int64_t deadline) { return lock(mutex, deadline); });
}
EXPORTED int pthread_mutex_timedlock(pthread_mutex_t* mutex, const timespec* time) {
  if (!is_own(*mutex)) return REAL(pthread_mutex_timedlock)(mutex, time);
  return pthread_mutex_clocklock(mutex, CLOCK_REALTIME, time);
}

EXPORTED int mtx_lock(mtx_t* mutex) {
  return c11(lock_mutex(posix(mutex)));
}
EXPORTED int mtx_trylock(mtx_t* mutex) {
  return c11(pthread_mutex_trylock(posix(mutex)));
}
EXPORTED int mtx_timedlock(mtx_t* mutex, const timespec* time) {
  return c11(pthread_mutex_timedlock(posix(mutex), time));
}
EXPORTED int mtx_unlock(mtx_t* mutex) {
  return c11(unlock_mutex(posix(mutex)));
}

EXPORTED int pthread_rwlock_rdlock(pthread_rwlock_t* lock) {
  return is_own(*lock) ? lock_for_reading(lock, kNever) : REAL(pthread_rwlock_rdlock)(lock);
}
EXPORTED int pthread_rwlock_wrlock(pthread_rwlock_t* lock) {
  return is_own(*lock) ? lock_for_writing(lock, kNever) : REAL(pthread_rwlock_wrlock)(lock);
}
EXPORTED int pthread_rwlock_tryrdlock(pthread_rwlock_t* lock) {
  return tried(REAL(pthread_rwlock_tryrdlock)(lock));
}
EXPORTED int pthread_rwlock_trywrlock(pthread_rwlock_t* lock) {
  return tried(REAL(pthread_rwlock_trywrlock)(lock));
}
EXPORTED int pthread_rwlock_clockrdlock(pthread_rwlock_t* lock, clockid_t clock, const timespec* time) {
  if (!is_own(*lock)) return REAL(pthread_rwlock_clockrdlock)(lock, clock, time);
  return by_time(clock, time, [lock](std::int64_t deadline) { return lock_for_reading(lock, deadline); });
}
EXPORTED int pthread_rwlock_clockwrlock(pthread_rwlock_t* lock, clockid_t clock, const timespec* time) {
  if (!is_own(*lock)) return REAL(pthread_rwlock_clockwrlock)(lock, clock, time);
  return by_time(clock, time, [lock](std::int64_t deadline) { return lock_for_writing(lock, deadline); });
}
EXPORTED int pthread_rwlock_timedrdlock(pthread_rwlock_t* lock, const timespec* time) {
  return pthread_rwlock_clockrdlock(lock, CLOCK_REALTIME, time);
}
EXPORTED int pthread_rwlock_timedwrlock(pthread_rwlock_t* lock, const timespec* time) {
  return pthread_rwlock_clockwrlock(lock, CLOCK_REALTIME, time);
}
EXPORTED int pthread_rwlock_unlock(pthread_rwlock_t* lock) {
  return unlocked(lock, kAll, REAL(pthread_rwlock_unlock)(lock));
}

EXPORTED int pthread_spin_lock(pthread_spinlock_t* lock) {
  if (!simulated()) return REAL(pthread_spin_lock)(lock);
  return await_lock(lock, kNever, [lock] { return REAL(pthread_spin_trylock)(lock); });
}
EXPORTED int pthread_spin_trylock(pthread_spinlock_t* lock) {
  return tried(REAL(pthread_spin_trylock)(lock));
}
EXPORTED int pthread_spin_unlock(pthread_spinlock_t* lock) {
  return unlocked(lock, 1, REAL(pthread_spin_unlock)(lock));
}
