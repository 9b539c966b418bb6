// Virtual clocks, and times as the C library gives them.
#pragma once

#include <sys/time.h>

#include <cerrno>
#include <cstdint>
#include <ctime>

#include "simulate/channel/message.hpp"

namespace verbscope::simulate {

inline constexpr std::int64_t kPicosPerNano = 1'000;
inline constexpr std::int64_t kPicosPerMicro = 1'000'000;
inline constexpr std::int64_t kPicosPerSecond = 1'000'000'000'000;

// Where the clocks begin, so that repeats read equal times: 2026-01-01 00:00 UTC, and a machine that has been up for a
// while, because programs take a time of 0 for none.
inline constexpr std::int64_t kEpochSeconds = 1'767'225'600;
inline constexpr std::int64_t kUpSeconds = 1'000;

// CPU time of reading a clock through the vDSO: 25 ns on the machines of the clusters' generation.
inline constexpr std::int64_t kReadClockPs = 25'000;

// A span of time, at most kNever.
std::int64_t picos(std::int64_t seconds, std::int64_t nanos);
inline std::int64_t picos(const timespec& span) {
  return picos(span.tv_sec, span.tv_nsec);
}
inline std::int64_t picos(const timeval& span) {
  return picos(span.tv_sec, span.tv_usec * 1000);
}
// A time and a span later, at most kNever.
std::int64_t after(std::int64_t now, std::int64_t span);
timespec to_timespec(std::int64_t picos);
// Rounded up, so that a timer that runs has not 0 left.
timeval to_timeval(std::int64_t picos);

bool valid(const timespec& time);
bool valid(const timeval& time);
// True if this is a clock of virtual time, other than of CPU time.
bool is_virtual(clockid_t clock);
// Virtual time at which the clock shows `time`.
std::int64_t when_shown(clockid_t clock, const timespec& time);
// Sleeps until a virtual time. Returns 0, or EINTR after a signal.
int sleep_until(std::int64_t when_ps);

// The result of a function that reports errors by errno: 0, or -1 if there is one.
inline int by_errno(int error) {
  if (error == 0) return 0;
  errno = error;
  return -1;
}

}  // namespace verbscope::simulate
