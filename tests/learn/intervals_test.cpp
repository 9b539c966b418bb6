// Intervals by profile likelihood, on machines whose figures are formulas.
#include "harness/learn/intervals.hpp"

#include <gtest/gtest.h>

#include <random>

#include "tests/learn/machine.hpp"

namespace verbscope {
namespace {

// Eight rows that take the longer one of the first parameter and of the second, which is known. The measured times of
// the first are 120, with errors of 8 %: the interval of an independent row is about 111 to 130.
LearnedInterval interval_beside(double known) {
  Machine lab;
  for (int i = 0; i < 8; ++i) lab.longer(1, 1);
  FitParameter second = parameter("nic.second_ns", known);
  second.low = known * 0.999;
  second.high = known * 1.001;
  RobustFit fit({parameter("nic.first_ns", 110), second}, lab.simulate(), {});
  for (std::size_t row = 0; row < lab.rows(); ++row)
    fit.add_row(RowUse::fitted, -std::log(120.0) + (row % 2 == 0 ? 0.0825 : -0.0825), kAllProperties);
  fit.improve(20);
  fit.refresh();
  return profile_intervals(fit, {}).front();
}

TEST(ProfileIntervals, AgreeWithTheLinearModelOfALinearMachine) {
  const LearnedInterval interval = interval_beside(5);
  EXPECT_TRUE(interval.identified);
  EXPECT_NEAR(interval.low, 111, 2);
  EXPECT_NEAR(interval.high, 130, 2.5);
}

// Below 113 the first parameter changes no figure, and 113 agrees with the measured times.
TEST(ProfileIntervals, AValueBelowWhichNothingChangesIsNotIdentified) {
  const LearnedInterval interval = interval_beside(113);
  EXPECT_FALSE(interval.identified);
  EXPECT_LT(interval.low, 104);
}

// The first parameter explains the rows, and the second would as well, 2 % higher. Then the first could have any lower
// value.
TEST(ProfileIntervals, ALimitThatAnotherMayReplaceIsNotIdentified) {
  Machine lab;
  for (int i = 0; i < 8; ++i) lab.longer(1, 1);
  RobustFit fit({parameter("nic.first_ns", 100), parameter("nic.second_ns", 98)}, lab.simulate(), {.error = 0.005});
  for (std::size_t row = 0; row < lab.rows(); ++row)
    fit.add_row(RowUse::fitted, -std::log(100.0) + (row % 2 == 0 ? 0.005 : -0.005), kAllProperties);
  fit.improve(20);
  fit.refresh();
  EXPECT_LT(profile_intervals(fit, {}).front().low, 80);
  EXPECT_FALSE(profile_intervals(fit, {}).front().identified);
}

TEST(ProfileIntervals, AParameterWithoutRowsIsNotIdentified) {
  Machine lab;
  for (int i = 1; i <= 8; ++i) lab.longer(i, 0);
  RobustFit fit({parameter("nic.first_ns", 40), parameter("nic.second_ns", 150)}, lab.simulate(), {});
  for (std::size_t row = 0; row < lab.rows(); ++row)
    fit.add_row(RowUse::fitted, lab.figure(row, {80, 200}), kAllProperties);
  fit.improve(20);
  fit.refresh();
  const std::vector<LearnedInterval> intervals = profile_intervals(fit, {});
  EXPECT_TRUE(intervals[0].identified);
  EXPECT_FALSE(intervals[1].identified);
}

// The intervals of a hundred noisy machines with few rows, whose residuals are smaller than their errors because each
// row determines a part of a parameter. Of 200 intervals 180 to 200 are four standard deviations around 95 %.
TEST(ProfileIntervals, ContainTheTrueValueAsOftenAsTheySay) {
  std::mt19937_64 random(7);
  std::normal_distribution<double> noise(0, 0.03);
  int inside = 0;
  for (int i = 0; i < 100; ++i) {
    Machine lab;
    for (int row = 1; row <= 5; ++row) {
      lab.longer(row, 0);
      lab.sum(row, 6 - row);
    }
    RobustFit fit({parameter("nic.first_ns", 60), parameter("nic.second_ns", 150)}, lab.simulate(), {});
    for (std::size_t row = 0; row < lab.rows(); ++row)
      fit.add_row(RowUse::fitted, lab.figure(row, {80, 200}) + noise(random), kAllProperties);
    fit.improve(20);
    fit.refresh();
    const std::vector<LearnedInterval> intervals = profile_intervals(fit, {});
    inside += intervals[0].low <= 80 && 80 <= intervals[0].high ? 1 : 0;
    inside += intervals[1].low <= 200 && 200 <= intervals[1].high ? 1 : 0;
  }
  EXPECT_GE(inside, 180);
}

}  // namespace
}  // namespace verbscope
