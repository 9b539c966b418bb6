#include "common/clock.hpp"

#include <gtest/gtest.h>
#include <time.h>

#include <cmath>
#include <vector>

namespace verbscope {
namespace {

std::int64_t monotonic_nanos() {
  timespec t{};
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

// Waits on the reference clock until `nanos` have passed on it.
void spin(std::int64_t nanos) {
  const auto end = monotonic_nanos() + nanos;
  while (monotonic_nanos() < end) cpu_relax();
}

class Clock : public ::testing::TestWithParam<TscClock::Source> {
 protected:
  void SetUp() override { TscClock::calibrate(GetParam()); }
};

TEST_P(Clock, AgreesWithTheSystemClock) {
  const auto reference_start = monotonic_nanos();
  const Picos start = TscClock::now();
  spin(50'000'000);
  const Picos elapsed = TscClock::now() - start;
  const auto reference = monotonic_nanos() - reference_start;
  // The reference interval encloses the measured one; being descheduled between two readings only lengthens the
  // reference.
  EXPECT_LT(to_seconds(elapsed), static_cast<double>(reference) * 1e-9 * 1.001);
  EXPECT_GT(to_seconds(elapsed), 50e-3 * 0.999);
}

TEST_P(Clock, NeverDecreases) {
  Picos last = TscClock::now();
  for (int i = 0; i < 100'000; ++i) {
    const Picos now = TscClock::now();
    ASSERT_GE(now, last);
    last = now;
  }
}

TEST_P(Clock, TimeContinuesAcrossACalibration) {
  const auto outer_start = monotonic_nanos();
  const Picos before = TscClock::now();
  const auto inner_start = monotonic_nanos();
  TscClock::calibrate();
  const auto inner = monotonic_nanos() - inner_start;
  const Picos gap = TscClock::now() - before;
  const auto outer = monotonic_nanos() - outer_start;
  const double allowance = 100e-6;  // seconds: the two clocks are aligned by reading one after the other
  EXPECT_GT(to_seconds(gap), static_cast<double>(inner) * 1e-9 - allowance);
  EXPECT_LT(to_seconds(gap), static_cast<double>(outer) * 1e-9 + allowance);
}

INSTANTIATE_TEST_SUITE_P(Sources, Clock, ::testing::Values(TscClock::Source::tsc_if_good, TscClock::Source::monotonic),
                         [](const auto& source) {
                           return source.param == TscClock::Source::monotonic ? "Monotonic" : "TscIfGood";
                         });

TEST(ClockFallback, CanBeForcedAndIsDescribed) {
  TscClock::calibrate(TscClock::Source::monotonic);
  EXPECT_FALSE(TscClock::uses_tsc());
  EXPECT_EQ(TscClock::describe(), "CLOCK_MONOTONIC (chosen)");
}

constexpr double kFixedPoint = 4294967296.0;

TEST(FitTsc, ReturnsPicosecondsPerTick) {
  // 2 GHz: 5 ms are 10^7 ticks, a tick is 500 ps. The counter starts high, near its wrap.
  const std::uint64_t base = UINT64_MAX - 12'000'000;
  const auto scale = fit_tsc({{{base, 1'000}, {base + 10'000'000, 5'001'000}, {base + 20'000'000, 10'001'000}}});
  ASSERT_TRUE(scale.has_value());
  EXPECT_EQ(static_cast<double>(*scale) / kFixedPoint, 500.0);
}

TEST(FitTsc, RejectsIntervalsThatDisagree) {
  EXPECT_TRUE(fit_tsc({{{0, 0}, {10'000'000, 5'000'000}, {20'001'000, 10'000'000}}}));   // 100 ppm apart
  EXPECT_FALSE(fit_tsc({{{0, 0}, {10'000'000, 5'000'000}, {20'004'000, 10'000'000}}}));  // 400 ppm apart
}

TEST(FitTsc, RejectsAClockThatDoesNotAdvance) {
  EXPECT_FALSE(fit_tsc({{{5, 0}, {5, 5'000'000}, {5, 10'000'000}}}));
  EXPECT_FALSE(fit_tsc({{{1'000, 0}, {900, 5'000'000}, {800, 10'000'000}}}));
  EXPECT_FALSE(fit_tsc({{{0, 7}, {10'000'000, 7}, {20'000'000, 7}}}));
}

}  // namespace
}  // namespace verbscope
