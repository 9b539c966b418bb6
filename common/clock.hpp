// The clock of threads on a host: the time stamp counter, scaled to picoseconds, or CLOCK_MONOTONIC where the counter
// cannot be trusted.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "common/units.hpp"

namespace verbscope {

// Tells the core that this is a spin loop. The built-in functions of the compiler stand here and below, since the
// header of their intrinsics costs every source that sees it half a second.
inline void cpu_relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  asm volatile("yield" ::: "memory");
#endif
}

// One moment on both clocks.
struct ClockSample {
  std::uint64_t ticks;  // time stamp counter
  std::int64_t nanos;   // CLOCK_MONOTONIC_RAW
};

// Picoseconds per tick as a fixed-point number with 32 bits of fraction, from three samples in order. Nothing when the
// two intervals disagree by more than kMaxClockDisagreement, or when a clock did not go forward.
inline constexpr double kMaxClockDisagreement = 200e-6;
std::optional<std::uint64_t> fit_tsc(const std::array<ClockSample, 3>& samples);

namespace detail {
// The conversion of the counter into picoseconds on the process's time line.
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

  // Time since about the first call in this process, on one time line for all threads. Lasts 106 days. Reading the
  // counter does not wait for earlier instructions: do not time less than some 50 ns with it.
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

  // Measures the counter against CLOCK_MONOTONIC_RAW for about 10 ms (at most three times as long) and uses it from
  // then on if it is invariant and the measurement is consistent; otherwise, and before the first call, now() is
  // CLOCK_MONOTONIC. The time line continues across a call. Call it before other threads read the clock; run_main does.
  static void calibrate(Source source = Source::tsc_if_good);

  // Whether now() reads the counter; a line for a record: "tsc 2.100 GHz" or "CLOCK_MONOTONIC (tsc is not invariant)".
  static bool uses_tsc() {
    return scale_.picos_per_tick != 0;
  }
  static std::string describe();

 private:
  __extension__ using Wide = __int128;
  static constexpr int kFractionBits = 32;

  static Picos monotonic_now();

  // The process has one time line, so this is its one mutable state: set by calibrate, constant while threads run, and
  // initialised as a constant so that now() needs no guard.
  static constinit inline detail::TscScale scale_{};
};

}  // namespace verbscope
