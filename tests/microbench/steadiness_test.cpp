// When a rate is steady, when another interval follows, and when the point is out of time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "microbench/run/rate_check.hpp"

namespace verbscope {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

Schedule schedule() {
  Schedule s;
  s.warmup = s.duration = 1ms;
  s.longest = 10ms;
  s.steady_within = 0.02;
  return s;
}

IntervalRates halves(double first, double second) {
  return {.ops = 1000, .mops = (first + second) / 2, .first_half_mops = first, .second_half_mops = second};
}

TEST(Steadiness, OneIntervalIsEnoughIfTheHalvesAgree) {
  Steadiness steadiness(schedule());
  steadiness.begin(1ms);
  EXPECT_FALSE(steadiness.goes_on(halves(10, 10.1), std::nullopt, true, 2ms));
  EXPECT_EQ(steadiness.failure(""), "");
  EXPECT_EQ(steadiness.report().windows, 1u);
  EXPECT_DOUBLE_EQ(steadiness.report().before_s, 1e-3);
}

TEST(Steadiness, AnIntervalOfTwiceTheLengthFollowsIfTheHalvesDiffer) {
  Steadiness steadiness(schedule());
  steadiness.begin(1ms);
  EXPECT_EQ(steadiness.duration(), Picos(1ms));
  EXPECT_TRUE(steadiness.goes_on(halves(12, 10), std::nullopt, true, 2ms));
  steadiness.begin(2ms);
  EXPECT_EQ(steadiness.duration(), Picos(2ms));
  EXPECT_FALSE(steadiness.goes_on(halves(10, 10), std::nullopt, true, 4ms));
  EXPECT_EQ(steadiness.failure(""), "");
  EXPECT_EQ(steadiness.report().windows, 2u);
}

TEST(Steadiness, AnIntervalFollowsIfTheAdaptersCountAnotherRate) {
  Steadiness steadiness(schedule());
  steadiness.begin(1ms);
  EXPECT_TRUE(steadiness.goes_on(halves(10, 10), 9.8, true, 2ms));
  EXPECT_FALSE(steadiness.goes_on(halves(10, 10), 9.95, true, 4ms));
}

TEST(Steadiness, AnIntervalFollowsUntilTheCachesSettleOrTheTimeIsOver) {
  Steadiness steadiness(schedule());
  steadiness.begin(1ms);
  EXPECT_TRUE(steadiness.goes_on(halves(10, 10), std::nullopt, false, 2ms));
  steadiness.begin(2ms);
  EXPECT_FALSE(steadiness.goes_on(halves(10, 10.5), std::nullopt, false, 9500us));
  EXPECT_EQ(steadiness.failure(""), "");  // the halves have agreed once
}

TEST(Steadiness, TheLastIntervalTakesSevenEighthsOfTheTimeLeft) {
  Steadiness steadiness(schedule());
  steadiness.begin(1ms);
  EXPECT_TRUE(steadiness.goes_on(halves(12, 10), std::nullopt, true, 8400us));
  EXPECT_EQ(steadiness.duration(), Picos(1400us));
  steadiness.begin(8400us);
  EXPECT_FALSE(steadiness.late(9800us));
  EXPECT_FALSE(steadiness.goes_on(halves(12, 10), std::nullopt, true, 10ms));
  EXPECT_THAT(steadiness.failure(""), HasSubstr("not steady within --longest 0.01 s: 12.000 Mops in the first half"));
}

TEST(Steadiness, PointWithoutCompletionsHasNoRate) {
  Steadiness steadiness(schedule());
  steadiness.begin(1ms);
  EXPECT_FALSE(steadiness.late(9ms));
  EXPECT_TRUE(steadiness.late(10ms));
  steadiness.give_up();
  EXPECT_THAT(steadiness.failure(""), HasSubstr("no rate within --longest 0.01 s"));
}

TEST(Steadiness, IntervalsThatThreadsEndAreNotRepeated) {
  Schedule by_count = schedule();
  by_count.threads_end_it = true;
  Steadiness steadiness(by_count);
  steadiness.begin(1ms);
  EXPECT_FALSE(steadiness.goes_on(halves(12, 0), std::nullopt, true, 2ms));
  EXPECT_EQ(steadiness.failure(""), "");
}

}  // namespace
}  // namespace verbscope
