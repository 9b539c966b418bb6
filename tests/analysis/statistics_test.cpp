// The statistics of `verbscope diff`, against closed forms, published examples, and known distributions with a seed.
#include "analysis/statistics.hpp"

#include <cmath>

#include "tests/analysis/draw.hpp"
#include "tests/analysis/records.hpp"

namespace verbscope {
namespace {

// Values whose logarithms are given.
std::vector<double> exponentials(const std::vector<double>& logarithms) {
  std::vector<double> out;
  for (const double value : logarithms) out.push_back(std::exp(value));
  return out;
}

// Student's t with two degrees of freedom has the distribution 1/2 + t / (2 sqrt(2 + t^2)). Two values a side whose
// logarithms are 0.02 apart have a variance of 0.0002 a side, which is also that of the difference of the means.
TEST(Change, TwoValuesPerSideMatchHandCalculation) {
  const auto difference = log_difference(exponentials({0, 0.02}), exponentials({0.06, 0.08}));
  ASSERT_TRUE(difference);
  EXPECT_NEAR(difference->estimate, 0.06, 1e-12);
  EXPECT_NEAR(difference->standard_error, std::sqrt(0.0002), 1e-12);
  EXPECT_NEAR(difference->freedom, 2, 1e-9);
  const auto above = [](double t) { return 0.5 - t / (2 * std::sqrt(2 + t * t)); };
  EXPECT_NEAR(difference->p_value_above(0), above(0.06 / std::sqrt(0.0002)), 1e-9);
  EXPECT_NEAR(difference->p_value_below(0), 1 - above(0.06 / std::sqrt(0.0002)), 1e-9);
  EXPECT_NEAR(difference->half_width(0.95), 4.302653 * std::sqrt(0.0002), 1e-6);  // t(0.975; 2) of the tables
  const Claims both = claims(*difference, 0.02);
  EXPECT_NEAR(both.changed, 2 * above(0.04 / std::sqrt(0.0002)), 1e-9);
  EXPECT_NEAR(both.equivalent, 1 - above(0.04 / std::sqrt(0.0002)), 1e-9);
}

// "Student", "The probable error of a mean", Biometrika 6, 1908: hours of sleep. R documents t.test(extra ~ group) of
// them: t = -1.8608, df = 17.776, p = 0.07939, from -3.3654832 to 0.2054832.
TEST(Change, SleepDataOfStudentMatchR) {
  const auto first = exponentials({0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0});
  const auto second = exponentials({1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4});
  const auto difference = log_difference(first, second);
  ASSERT_TRUE(difference);
  EXPECT_NEAR(difference->estimate / difference->standard_error, 1.8608, 5e-5);
  EXPECT_NEAR(difference->freedom, 17.776, 5e-4);
  EXPECT_NEAR(claims(*difference, 0).changed, 0.07939, 5e-6);
  EXPECT_NEAR(difference->estimate + difference->half_width(0.95), 3.3654832, 5e-8);
  EXPECT_NEAR(difference->estimate - difference->half_width(0.95), -0.2054832, 5e-8);
}

// The first two p-values are below alpha / 4 = 0.0125 and alpha / 3 = 0.0167; the third is above alpha / 2 = 0.025.
TEST(Change, HolmStopsAtTheFirstNonRejection) {
  EXPECT_EQ(holm_rejections({0.01, 0.04, 0.03, 0.005}, 0.05), (std::vector<bool>{true, false, false, true}));
  EXPECT_EQ(holm_rejections({0.04}, 0.05), (std::vector<bool>{true}));
  EXPECT_EQ(holm_rejections({0.04, 0.03}, 0.05), (std::vector<bool>{false, false}));
  EXPECT_EQ(holm_rejections({0.02, 0.04}, 0.05), (std::vector<bool>{true, true}));
  EXPECT_EQ(holm_rejections({}, 0.05), std::vector<bool>{});
}

TEST(Change, SwappingTheSamplesSwapsTheClaims) {
  const std::vector<double> a{100, 101, 99.5}, b{96, 97, 95.2, 96.4};
  const auto there = log_difference(a, b), back = log_difference(b, a);
  EXPECT_NEAR(there->estimate, -back->estimate, 1e-12);
  const double margin = log_margin(3);
  EXPECT_NEAR(claims(*there, margin).changed, claims(*back, margin).changed, 1e-9);
  EXPECT_NEAR(claims(*there, margin).equivalent, claims(*back, margin).equivalent, 1e-9);
  EXPECT_NEAR(std::exp(-margin), 0.97, 1e-12);
}

TEST(Change, OneValuePerSideHasNoDifference) {
  EXPECT_FALSE(log_difference({80}, {40, 41, 42}));
  EXPECT_FALSE(log_difference({80, 81}, {40}));
}

// 2000 intervals of 95 %: 100 miss, give or take three standard deviations of a binomial (9.7). With few and equal
// values a side Welch's are a little wide, never narrow.
TEST(Change, IntervalsContainTheTrueRatioAtTheirConfidence) {
  for (const int n : {3, 5, 10}) {
    Draw draw(7);
    int missed = 0;
    for (int i = 0; i < 2000; ++i) {
      const auto difference = log_difference(draw.rates(n, 80, 0.01), draw.rates(n, 76, 0.01));
      missed += std::abs(difference->estimate - std::log(0.95)) > difference->half_width(0.95) ? 1 : 0;
    }
    EXPECT_LE(missed, 130) << n;
    EXPECT_GE(missed, n == 3 ? 40 : 70) << n;
  }
}

// Of populations that do not differ by more than the margin, at most 5 of 100 are called changed; of populations that
// differ by just the margin, at most 5 of 100 equivalent. Of 2000 these are 100, and 130 three deviations above.
TEST(Change, WrongClaimsStayWithinTheLevel) {
  const double margin = log_margin(3);
  for (const int n : {2, 3, 5, 10}) {
    for (const double spread : {0.001, 0.01, 0.05}) {
      Draw draw(11);
      int changed_zero = 0, changed = 0, equivalent = 0;
      for (int i = 0; i < 2000; ++i) {
        const auto base = draw.rates(n, 80, spread);
        changed_zero += claims(*log_difference(base, draw.rates(n, 80, spread)), 0).changed <= 0.05 ? 1 : 0;
        const Claims at_margin = claims(*log_difference(base, draw.rates(n, 80 * 0.97, spread)), margin);
        changed += at_margin.changed <= 0.05 ? 1 : 0;
        equivalent += at_margin.equivalent <= 0.05 ? 1 : 0;
      }
      EXPECT_LE(changed_zero, 130) << n << " " << spread;
      EXPECT_LE(changed, 130) << n << " " << spread;
      EXPECT_LE(equivalent, 130) << n << " " << spread;
    }
  }
}

// Twenty unchanged points in each of 500 comparisons: at most 5 of 100 comparisons contain a claim.
TEST(Change, ErrorRateOfManyComparisonsStaysWithinTheLevel) {
  Draw draw(13);
  int alarms = 0;
  for (int i = 0; i < 500; ++i) {
    std::vector<double> p;
    for (int k = 0; k < 20; ++k) {
      p.push_back(claims(*log_difference(draw.rates(5, 80, 0.01), draw.rates(5, 80, 0.01)), 0).changed);
    }
    const auto rejected = holm_rejections(p, 0.05);
    alarms += std::ranges::count(rejected, true) > 0 ? 1 : 0;
  }
  EXPECT_LE(alarms, 25 + 3 * 5);  // sqrt(500 * 0.05 * 0.95) = 4.9
  EXPECT_GE(alarms, 5);           // the level is used: it is no test that never says anything
}

// The suggested number of repetitions decides nine of ten cases, half of it fewer.
TEST(Change, SuggestedRepetitionsDecide) {
  const double margin = log_margin(1), spread = 0.02;
  for (const double percent : {0.0, 4.0}) {
    const double factor = 1 - percent / 100;
    const LogDifference seen{.estimate = std::log(factor),
                             .standard_error = 1,
                             .freedom = 1,
                             .first_variance = spread * spread,
                             .second_variance = spread * spread};
    const auto enough = repetitions_to_decide(seen, margin, 0.05, 5);
    ASSERT_TRUE(enough);
    const auto decided = [&](int n) {
      Draw draw(17);
      int count = 0;
      for (int i = 0; i < 400; ++i) {
        const Claims both =
            claims(*log_difference(draw.rates(n, 80, spread), draw.rates(n, 80 * factor, spread)), margin);
        count += (percent > 0 ? both.changed : both.equivalent) <= 0.05 / 5 ? 1 : 0;
      }
      return count;
    };
    EXPECT_NEAR(decided(*enough), 360, 18 + 8) << percent;  // three of sqrt(400 * 0.9 * 0.1) = 6, and whole numbers
    EXPECT_LT(decided(*enough / 2), 320) << percent;
  }
  const LogDifference at_margin{
      .estimate = -margin, .standard_error = 1, .freedom = 1, .first_variance = 1e-4, .second_variance = 1e-4};
  EXPECT_FALSE(repetitions_to_decide(at_margin, margin, 0.05, 1));
}

// 1, 2 and 3 have a mean of 2 and a variance of 1; t(0.975; 2) of the tables is 4.302653.
TEST(MeanInterval, ThreeValuesMatchHandCalculation) {
  const MeanInterval mean = mean_interval({1, 2, 3});
  EXPECT_NEAR(mean.mean, 2, 1e-12);
  EXPECT_NEAR(mean.high - 2, 4.302653 / std::sqrt(3), 1e-6);
  EXPECT_NEAR(2 - mean.low, 4.302653 / std::sqrt(3), 1e-6);
  EXPECT_EQ(mean.count, 3u);
  const MeanInterval one = mean_interval({7});
  EXPECT_EQ(one.low, 7);
  EXPECT_EQ(one.high, 7);
}

// 100 of 2000 intervals miss the true mean, plus or minus three standard deviations (9.7).
TEST(MeanInterval, ContainsTheTrueMeanAtItsConfidence) {
  for (const int n : {2, 3, 5, 20}) {
    Draw draw(19);
    int missed = 0;
    for (int i = 0; i < 2000; ++i) {
      const MeanInterval mean = mean_interval(draw.rates(n, 80, 0.05));
      missed += mean.low > 80 || mean.high < 80 ? 1 : 0;
    }
    EXPECT_NEAR(missed, 100, 30) << n;
  }
}

}  // namespace
}  // namespace verbscope
