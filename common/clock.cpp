#include "common/clock.hpp"

#include <fmt/format.h>
#include <time.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <cmath>

#include "common/error.hpp"

namespace verbscope {
namespace {

constexpr std::int64_t kCalibrationHalfNanos = 5'000'000;
constexpr int kCalibrationAttempts = 3;
constexpr double kTicksFraction = 4294967296.0;  // 2^32: the fraction of TscScale

std::int64_t read_nanos(clockid_t clock) {
  timespec t{};
  check("clock_gettime", ::clock_gettime(clock, &t));
  return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

// The process's time line, from CLOCK_MONOTONIC. It starts at the first call, because a host may be up for longer than
// the 106 days of Picos.
Picos since_start(std::int64_t nanos) {
  static const std::int64_t start = nanos;
  return Nanos(nanos - start);
}

#if defined(__x86_64__)

// CPUID 8000_0007h, EDX bit 8: the counter has a constant rate in all power states (Intel SDM volume 3, "Invariant
// TSC").
bool tsc_is_invariant() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(0x80000007u, &a, &b, &c, &d) != 0 && (d & (1u << 8)) != 0;
}

// Reads both clocks at one time. Of several attempts, returns the one whose two counter readings are closest.
ClockSample sample_clocks(clockid_t clock) {
  ClockSample best{};
  std::uint64_t narrowest = UINT64_MAX;
  for (int i = 0; i < 16; ++i) {
    const std::uint64_t before = __builtin_ia32_rdtsc();
    const std::int64_t nanos = read_nanos(clock);
    const std::uint64_t width = __builtin_ia32_rdtsc() - before;
    if (width < narrowest) {
      narrowest = width;
      best = {before + width / 2, nanos};
    }
  }
  return best;
}

void sleep_nanos(std::int64_t nanos) {
  const timespec t{0, nanos};
  ::clock_nanosleep(CLOCK_MONOTONIC, 0, &t,
                    nullptr);  // an early or late return is harmless: both clocks are read later
}

std::optional<std::uint64_t> measure_tsc() {
  for (int attempt = 0; attempt < kCalibrationAttempts; ++attempt) {
    std::array<ClockSample, 3> samples{};
    samples[0] = sample_clocks(CLOCK_MONOTONIC_RAW);
    for (std::size_t i = 1; i < samples.size(); ++i) {
      sleep_nanos(kCalibrationHalfNanos);
      samples[i] = sample_clocks(CLOCK_MONOTONIC_RAW);
    }
    if (const auto scale = fit_tsc(samples)) return scale;
  }
  return std::nullopt;
}

#endif

}  // namespace

std::optional<std::uint64_t> fit_tsc(const std::array<ClockSample, 3>& samples) {
  const auto rate = [&](std::size_t from,
                        std::size_t to) {  // picoseconds per tick; NaN if a clock did not advance
    const auto ticks = static_cast<double>(static_cast<std::int64_t>(samples[to].ticks - samples[from].ticks));
    const auto nanos = static_cast<double>(samples[to].nanos - samples[from].nanos);
    return ticks > 0 && nanos > 0 ? nanos * 1e3 / ticks : std::nan("");
  };
  const double first = rate(0, 1);
  const double second = rate(1, 2);
  if (!(std::abs(first - second) <= kMaxClockDisagreement * first)) return std::nullopt;
  return static_cast<std::uint64_t>(std::llround(rate(0, 2) * kTicksFraction));
}

Picos TscClock::monotonic_now() {
  return since_start(read_nanos(CLOCK_MONOTONIC));
}

void TscClock::calibrate(Source source) {
  scale_ = {};
  if (source == Source::monotonic) {
    scale_.why_not = "chosen";
    return;
  }
#if defined(__x86_64__)
  if (!tsc_is_invariant()) {
    scale_.why_not = "tsc is not invariant";
    return;
  }
  const auto picos_per_tick = measure_tsc();
  if (!picos_per_tick) {
    scale_.why_not = "tsc and CLOCK_MONOTONIC_RAW disagree";
    return;
  }
  const ClockSample base = sample_clocks(CLOCK_MONOTONIC);
  scale_ = {*picos_per_tick, base.ticks, since_start(base.nanos).count(), ""};
#else
  scale_.why_not = "no tsc on this architecture";
#endif
}

std::string TscClock::describe() {
  if (!uses_tsc()) return fmt::format("CLOCK_MONOTONIC ({})", scale_.why_not);
  return fmt::format("tsc {:.3f} GHz", kTicksFraction * 1e3 / static_cast<double>(scale_.picos_per_tick));
}

}  // namespace verbscope
