// Reading clocks and sleeping, in virtual time.
#include "simulate/preload/clock.hpp"

#include <pthread.h>
#include <sys/resource.h>
#include <sys/timeb.h>
#include <sys/times.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "simulate/preload/real.hpp"
#include "simulate/preload/session.hpp"

namespace verbscope::simulate {
namespace {

// What the clock shows at virtual time 0.
std::int64_t offset_seconds(clockid_t clock) {
  constexpr std::int64_t kLeapSeconds = 37;  // TAI - UTC since 2017
  switch (clock) {
    case CLOCK_REALTIME:
    case CLOCK_REALTIME_COARSE:
    case CLOCK_REALTIME_ALARM:
      return kEpochSeconds;
    case CLOCK_TAI:
      return kEpochSeconds + kLeapSeconds;
    case CLOCK_PROCESS_CPUTIME_ID:
    case CLOCK_THREAD_CPUTIME_ID:
      return 0;
    default:
      return kUpSeconds;
  }
}

bool counts_work(clockid_t clock) {
  return clock == CLOCK_PROCESS_CPUTIME_ID || clock == CLOCK_THREAD_CPUTIME_ID;
}

timespec shown_by(clockid_t clock) {
  std::int64_t now = now_ps(kReadClockPs);
  if (clock == CLOCK_PROCESS_CPUTIME_ID) now = process_work_ps();
  if (clock == CLOCK_THREAD_CPUTIME_ID) now = thread_work_ps();
  timespec time = to_timespec(now);
  time.tv_sec += offset_seconds(clock);
  return time;
}

// The rest of a sleep that a signal has ended.
timespec rest_until(std::int64_t when) {
  return to_timespec(std::max<std::int64_t>(when - now_ps(0), 0));
}

int sleep_relative(const timespec& span, timespec* rest) {
  if (!valid(span)) return EINVAL;
  const std::int64_t when = after(now_ps(0), picos(span));
  const int error = sleep_until(when);
  if (error == EINTR && rest != nullptr) *rest = rest_until(when);
  return error;
}

}  // namespace

std::int64_t after(std::int64_t now, std::int64_t span) {
  return span > kNever - now ? kNever : now + span;
}

std::int64_t picos(std::int64_t seconds, std::int64_t nanos) {
  if (seconds >= kNever / kPicosPerSecond) return kNever;
  return seconds * kPicosPerSecond + nanos * kPicosPerNano;
}

timespec to_timespec(std::int64_t picos) {
  return {.tv_sec = picos / kPicosPerSecond, .tv_nsec = picos % kPicosPerSecond / kPicosPerNano};
}

timeval to_timeval(std::int64_t picos) {
  const std::int64_t micros = picos / kPicosPerMicro + (picos % kPicosPerMicro > 0);
  return {.tv_sec = micros / 1'000'000, .tv_usec = micros % 1'000'000};
}

bool valid(const timespec& time) {
  return time.tv_sec >= 0 && time.tv_nsec >= 0 && time.tv_nsec < 1'000'000'000;
}

bool valid(const timeval& time) {
  return time.tv_sec >= 0 && time.tv_usec >= 0 && time.tv_usec < 1'000'000;
}

bool is_virtual(clockid_t clock) {
  return clock >= 0 && clock <= CLOCK_TAI && !counts_work(clock);
}

std::int64_t when_shown(clockid_t clock, const timespec& time) {
  return std::max<std::int64_t>(picos(time.tv_sec - offset_seconds(clock), time.tv_nsec), 0);
}

int sleep_until(std::int64_t when_ps) {
  const int error = ask(Operation::sleep_until, when_ps);
  if (error == EINTR) pthread_testcancel();
  return error;
}

}  // namespace verbscope::simulate

using namespace verbscope::simulate;

EXPORTED int clock_gettime(clockid_t clock, timespec* time) {
  if (!simulated() || (!is_virtual(clock) && !counts_work(clock))) return REAL(clock_gettime)(clock, time);
  *time = shown_by(clock);
  return 0;
}

EXPORTED int clock_getres(clockid_t clock, timespec* resolution) {
  if (!simulated() || !is_virtual(clock)) return REAL(clock_getres)(clock, resolution);
  if (resolution != nullptr) *resolution = {.tv_sec = 0, .tv_nsec = 1};
  return 0;
}

EXPORTED int gettimeofday(timeval* time, void* zone) {
  if (!simulated()) return REAL(gettimeofday)(time, zone);
  const timespec now = shown_by(CLOCK_REALTIME);
  *time = {.tv_sec = now.tv_sec, .tv_usec = now.tv_nsec / 1000};
  if (zone != nullptr) *static_cast<struct timezone*>(zone) = {};
  return 0;
}

EXPORTED time_t time(time_t* to) {
  if (!simulated()) return REAL(time)(to);
  const time_t now = shown_by(CLOCK_REALTIME).tv_sec;
  if (to != nullptr) *to = now;
  return now;
}

EXPORTED int ftime(timeb* to) {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  *to = {};
  to->time = now.tv_sec;
  to->millitm = static_cast<unsigned short>(now.tv_nsec / 1'000'000);
  return 0;
}

EXPORTED int timespec_get(timespec* time, int base) {
  if (!simulated() || base != TIME_UTC) return REAL(timespec_get)(time, base);
  *time = shown_by(CLOCK_REALTIME);
  return base;
}

EXPORTED clock_t clock() {
  if (!simulated()) return REAL(clock)();
  const timespec work = shown_by(CLOCK_PROCESS_CPUTIME_ID);
  return work.tv_sec * CLOCKS_PER_SEC + work.tv_nsec / (1'000'000'000 / CLOCKS_PER_SEC);
}

EXPORTED clock_t times(tms* of) {
  if (!simulated()) return REAL(times)(of);
  const std::int64_t tick = kPicosPerSecond / sysconf(_SC_CLK_TCK);
  const std::int64_t now = now_ps(kReadClockPs);
  if (of != nullptr) {
    *of = {};
    of->tms_utime = process_work_ps() / tick;
  }
  return kUpSeconds * sysconf(_SC_CLK_TCK) + now / tick;
}

// Times of children, and all but times, are those of the operating system.
EXPORTED int getrusage(__rusage_who_t who, rusage* usage) {
  const int result = REAL(getrusage)(who, usage);
  if (result != 0 || !simulated() || who == RUSAGE_CHILDREN) return result;
  usage->ru_utime = to_timeval(who == RUSAGE_SELF ? process_work_ps() : thread_work_ps());
  usage->ru_stime = {};
  return 0;
}

EXPORTED int nanosleep(const timespec* span, timespec* rest) {
  return simulated() ? by_errno(sleep_relative(*span, rest)) : REAL(nanosleep)(span, rest);
}

EXPORTED int clock_nanosleep(clockid_t clock, int flags, const timespec* time, timespec* rest) {
  if (!simulated() || !is_virtual(clock)) return REAL(clock_nanosleep)(clock, flags, time, rest);
  if ((flags & TIMER_ABSTIME) == 0) return sleep_relative(*time, rest);
  return valid(*time) ? sleep_until(when_shown(clock, *time)) : EINVAL;
}

EXPORTED int usleep(useconds_t micros) {
  if (!simulated()) return REAL(usleep)(micros);
  return by_errno(sleep_relative({.tv_sec = micros / 1'000'000, .tv_nsec = micros % 1'000'000 * 1000L}, nullptr));
}

EXPORTED unsigned sleep(unsigned seconds) {
  if (!simulated()) return REAL(sleep)(seconds);
  timespec rest{};
  if (sleep_relative({.tv_sec = seconds, .tv_nsec = 0}, &rest) == 0) return 0;
  return static_cast<unsigned>(rest.tv_sec + (rest.tv_nsec >= 500'000'000));
}
