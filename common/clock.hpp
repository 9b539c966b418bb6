// The clock of threads on a host: the time stamp counter scaled to picoseconds, or CLOCK_MONOTONIC if the counter is
// unreliable.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "common/units.hpp"

namespace verbscope {

// Spin-loop hint for the core. Compiler built-ins are used here and below because the header of the intrinsics adds
// half a second to the compilation of each source.
inline void cpu_relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  asm volatile("yield" ::: "memory");
#endif
}

// One point in time on both clocks.
struct ClockSample {
  std::uint64_t ticks;  // time stamp counter
  std::int64_t nanos;   // CLOCK_MONOTONIC_RAW
};

// Picoseconds per tick as a fixed-point number with 32 bits of fraction, computed from three samples in order. Empty if
// the two intervals disagree by more than kMaxClockDisagreement, or if a clock did not advance.
inline constexpr double kMaxClockDisagreement = 200e-6;
std::optional<std::uint64_t> fit_tsc(const std::array<ClockSample, 3>& samples);

namespace detail {
// Converts the counter to picoseconds on the process's time line.
struct TscScale {
  std::uint64_t picos_per_tick = 0;  // fixed point, 32 bits of fraction; 0: the counter is not used
  std::uint64_t base_ticks = 0;
  std::int64_t base_picos = 0;
  const char* why_not = "not calibrated";
};
}  // namespace detail

class TscClock {
 public:
  enum class Source { tsc_if_good, monotonic };

  // Time since approximately the first call in this process, on one time line for all threads. Range: 106 days. Reading
  // the counter does not wait for earlier instructions: do not measure intervals below about 50 ns.
  static Picos now() {
#if defined(__x86_64__)
    if (scale_.picos_per_tick != 0) [[likely]] {
      const auto ticks = static_cast<std::int64_t>(__builtin_ia32_rdtsc() - scale_.base_ticks);
      const auto picos = (static_cast<Wide>(ticks) * static_cast<std::int64_t>(scale_.picos_per_tick)) >> kFractionBits;
      return Picos(scale_.base_picos + static_cast<std::int64_t>(picos));
    }
#endif
    return monotonic_now();
  }

  // Measures the counter against CLOCK_MONOTONIC_RAW for about 10 ms (at most three times that). Afterwards now() uses
  // the counter if it is invariant and the measurement is consistent, else CLOCK_MONOTONIC, as before the first call.
  // The time line continues across a call. Call it before other threads read the clock, in a process that measures real
  // time.
  static void calibrate(Source source = Source::tsc_if_good);

  // True if now() reads the counter. describe() returns a line for records: "tsc 2.100 GHz" or "CLOCK_MONOTONIC (tsc is
  // not invariant)".
  static bool uses_tsc() {
    return scale_.picos_per_tick != 0;
  }
  static std::string describe();

 private:
  __extension__ using Wide = __int128;
  static constexpr int kFractionBits = 32;

  static Picos monotonic_now();

  // The only mutable state, because the process has one time line. Set by calibrate, constant while threads run, and
  // constant-initialised so that now() needs no guard.
  static constinit inline detail::TscScale scale_{};
};

}  // namespace verbscope
