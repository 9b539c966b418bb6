// Differences between two results files: what is evidence, and what is not.
#include "analysis/diff.hpp"

#include <CLI/CLI.hpp>
#include <cmath>
#include <numbers>
#include <random>

#include "tests/analysis/records.hpp"

namespace verbscope {
namespace {

constexpr double kLevel = 0.95;

std::vector<Record> runs(const std::vector<double>& rates, int post_list = 1, const std::string& fabric = "sim:cib") {
  std::vector<Record> out;
  for (std::size_t i = 0; i < rates.size(); ++i) {
    out.push_back(sweep_record(Json{{"post_list", post_list}}, rates[i], static_cast<int>(i), fabric));
  }
  return out;
}

std::vector<Record> joined(std::vector<Record> a, const std::vector<Record>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// Normal with a spread of 1 % around `mean`; Box and Muller, so that every library draws the same.
std::vector<double> draw(std::mt19937_64& random, int n, double mean) {
  const auto uniform = [&random] { return (static_cast<double>(random() >> 11) + 0.5) * 0x1p-53; };
  std::vector<double> out;
  for (int i = 0; i < n; ++i) {
    const double normal = std::sqrt(-2 * std::log(uniform())) * std::cos(2 * std::numbers::pi * uniform());
    out.push_back(mean * (1 + 0.01 * normal));
  }
  return out;
}

TEST(Diff, EqualRunsAreNoEvidence) {
  const auto base = joined(runs({80, 81, 79}), runs({100, 101, 99}, 16));
  for (const DiffRow& row : diff_records(base, base, kLevel)) {
    EXPECT_EQ(row.verdict, Verdict::no_evidence);
    EXPECT_DOUBLE_EQ(row.ratio, 1);
  }
}

// Runs of a deterministic cluster are equal to the bit; sums of 2 and of 7 of them round differently.
TEST(Diff, EqualValuesAreNoEvidenceHoweverManyThereAre) {
  for (int i = 1; i <= 100; ++i) {
    const double rate = 0.7 * i;
    for (const std::size_t many : {3, 7, 100}) {
      const auto few = runs({rate, rate}), more = runs(std::vector<double>(many, rate));
      EXPECT_EQ(diff_records(few, more, kLevel)[0].verdict, Verdict::no_evidence) << rate << ", " << many << " runs";
      EXPECT_EQ(diff_records(more, few, kLevel)[0].verdict, Verdict::no_evidence) << rate << ", " << many << " runs";
    }
  }
}

// A millionth less in every run is no rounding.
TEST(Diff, ASmallLossWithoutSpreadIsFound) {
  const auto rows = diff_records(runs({80, 80}), runs({79.99992, 79.99992, 79.99992}), kLevel);
  EXPECT_EQ(rows[0].verdict, Verdict::slower);
}

TEST(Diff, ALossBeyondTheSpreadIsFoundAndOneWithinItIsNot) {
  const auto base = joined(runs({80, 80.4, 79.6, 80.2, 79.8}), runs({100, 110, 90, 105, 95}, 16));
  const auto slowed = joined(runs({76, 76.4, 75.6, 76.2, 75.8}), runs({95, 104, 86, 100, 90}, 16));
  const auto rows = diff_records(base, slowed, kLevel);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].verdict, Verdict::slower);
  EXPECT_NEAR(rows[0].ratio, 0.95, 1e-9);
  EXPECT_EQ(rows[1].verdict, Verdict::no_evidence);
  EXPECT_EQ(diff_records(slowed, base, kLevel)[0].verdict, Verdict::faster);
}

TEST(Diff, OneRunOnASideIsNeverEvidence) {
  const auto rows = diff_records(runs({80}), runs({40, 41, 42}), kLevel);
  EXPECT_EQ(rows[0].verdict, Verdict::no_evidence);
  EXPECT_FALSE(rows[0].interval);
}

TEST(Diff, PointsOfOneSideAreListed) {
  const auto rows = diff_records(runs({80, 81}, 1), runs({80, 81}, 2), kLevel);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].verdict, Verdict::only_base);
  EXPECT_EQ(rows[1].verdict, Verdict::only_new);
  EXPECT_TRUE(within_threshold(rows, 0));
}

TEST(Diff, AChangedProfileIsTheSameClusterAndAnotherIsNot) {
  const auto base = runs({80, 81});
  EXPECT_EQ(diff_records(base, runs({80, 81}, 1, "sim:/tmp/slow/cib.json"), kLevel).size(), 1u);
  EXPECT_EQ(diff_records(base, runs({80, 81}, 1, "sim:cx3"), kLevel).size(), 2u);
}

TEST(Diff, TheGateOpensUpToItsThreshold) {
  const auto rows = diff_records(runs({100, 100.1, 99.9}), runs({96, 96.1, 95.9}), kLevel);
  EXPECT_TRUE(within_threshold(rows, 5));
  EXPECT_FALSE(within_threshold(rows, 3));
}

TEST(Diff, APointThatFailsNowClosesTheGate) {
  auto after = runs({80, 81});
  after[1].status = RecordStatus::failed;
  after[1].reason = "no end after 3 s";
  const auto rows = diff_records(runs({80, 81}), after, kLevel);
  EXPECT_EQ(rows[0].verdict, Verdict::failed);
  EXPECT_FALSE(within_threshold(rows, 50));
  EXPECT_THAT(diff_text(rows, kLevel), testing::HasSubstr("no end after 3 s"));
}

// The level says how many of 200 comparisons of samples of one population are called different: 5 %, give or take three
// standard deviations of a binomial (sqrt(200 * 0.05 * 0.95) = 3.1).
TEST(Diff, FalseAlarmsAreAsOftenAsTheLevelSays) {
  for (const int repetitions : {2, 3, 5, 10}) {
    std::mt19937_64 random(7);
    int alarms = 0;
    for (int i = 0; i < 200; ++i) {
      const auto base = runs(draw(random, repetitions, 80)), other = runs(draw(random, repetitions, 80));
      alarms += diff_records(base, other, kLevel)[0].verdict != Verdict::no_evidence ? 1 : 0;
    }
    EXPECT_NEAR(alarms, 10, 9.3) << repetitions << " repetitions";
  }
}

// A loss of 5 % is 8 standard errors when the spread is 1 % and there are 5 repetitions.
TEST(Diff, ALossOfFivePercentIsFoundEveryTime) {
  std::mt19937_64 random(11);
  for (int i = 0; i < 50; ++i) {
    const auto base = runs(draw(random, 5, 80)), other = runs(draw(random, 5, 76));
    EXPECT_EQ(diff_records(base, other, kLevel)[0].verdict, Verdict::slower);
  }
}

TEST(Diff, CsvHasALineAPointAndQuotesWhatNeedsIt) {
  auto record = sweep_record(Json{{"cores", "0,1"}, {"label", "=1+1"}}, 80);
  const std::string csv = diff_csv(diff_records({record}, {record}, kLevel));
  EXPECT_EQ(std::ranges::count(csv, '\n'), 2);
  EXPECT_THAT(csv, testing::StartsWith("id,fabric,title,verdict,"));
}

}  // namespace
}  // namespace verbscope
