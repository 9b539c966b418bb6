// The intervals of predictions: from which errors they are made, and how often they hold.
#include "harness/evidence/intervals.hpp"

#include <cmath>
#include <random>

#include "harness/evidence/validate.hpp"
#include "tests/harness/evidence_rows.hpp"

namespace verbscope {
namespace {

using test::outcomes_of;
using test::rows_of;
using testing::HasSubstr;

TEST(Kinds, FollowTheQuantityAndItsSize) {
  auto rows = rows_of("cib,READ,64,4,10,0,a\ncib,READ,65536,4,10,0,abc\ncib,LATENCY,4096,2048,1,0,a\n");
  EXPECT_EQ(kind_of(rows[0]), "measured rate below 64 KB");
  EXPECT_EQ(kind_of(rows[1]), "measured rate of 64 KB and more (shape)");
  EXPECT_EQ(kind_of(rows[2]), "measured latency of 4 KB and more");
  rows[0].columns = Json::object();
  rows[0].point.second = rows[0].point.run;
  EXPECT_EQ(kind_of(rows[0]), "published ratio");
  rows[0].point.along = CurvePlace{};
  EXPECT_EQ(kind_of(rows[0]), "published place on a curve");
}

// One measurement of 10 per source and cluster, from `first` on: "cib,READ,1,1,10,0,s1".
std::string lines_of_sources(const std::string& cluster, int first, int count) {
  std::string lines;
  for (int i = first; i < first + count; ++i) lines += fmt::format("{},READ,{},1,10,0,s{}\n", cluster, i, i);
  return lines;
}

std::vector<EvidenceOutcome> with_intervals(const std::vector<EvidenceRow>& rows, const std::vector<double>& ours) {
  std::vector<EvidenceOutcome> outcomes = outcomes_of(rows, ours);
  add_intervals(outcomes);
  return outcomes;
}

// Nine others are off by -10 % to +30 %. The rank is 0.1 (9 + 1) = 1: the smallest and the largest error.
TEST(Intervals, ReachFromTheLargestToTheSmallestErrorOfNineOthers) {
  const auto rows = rows_of(lines_of_sources("cib", 1, 10));
  const std::vector<double> ours{20, 9, 9.5, 9.8, 10, 10.2, 10.4, 10.6, 11, 13};
  const auto outcomes = with_intervals(rows, ours);
  ASSERT_TRUE(outcomes[0].interval);
  EXPECT_NEAR(outcomes[0].interval->low, 20 / 1.3, 1e-9);
  EXPECT_NEAR(outcomes[0].interval->high, 20 / 0.9, 1e-9);
  EXPECT_NEAR(outcomes[1].interval->low, 9 / 2.0,
              1e-9);  // its own error is the smallest, that of the first the largest
  EXPECT_NEAR(outcomes[1].interval->high, 9 / 0.95, 1e-9);
  Validation validation{.outcomes = outcomes, .fitted = {}, .curves = {}};
  // 10 is outside for the first (15.4..22.2) and the second (4.5..9.47).
  EXPECT_THAT(validation_summary(validation), testing::ContainsRegex("all +\\|.*\\| +10 +8 +80\n"));
  EXPECT_THAT(validation_rows(validation), HasSubstr("15.38..22.22 | prediction"));
}

TEST(Intervals, UseOtherClustersAndThenOtherKindsIfTooFewRowsAreAlike) {
  for (const char* tenth : {"cx3,READ,10,1,10,0,s10\n", "cib,READ,65536,1,10,0,s10\n"}) {
    const auto rows = rows_of(lines_of_sources("cib", 1, 9) + tenth);
    const auto outcomes = with_intervals(rows, {9, 10, 10, 10, 10, 10, 10, 10, 12.5, 10});
    ASSERT_TRUE(outcomes[9].interval) << tenth;  // the nine others
    EXPECT_NEAR(outcomes[9].interval->low, 10 / 1.25, 1e-9);
    EXPECT_NEAR(outcomes[9].interval->high, 10 / 0.9, 1e-9);
    EXPECT_NEAR(outcomes[0].interval->low, 9 / 1.25, 1e-9);  // eight and the tenth
    EXPECT_NEAR(outcomes[0].interval->high, 9, 1e-9);
  }
}

TEST(Intervals, CalibratedRowsCarryNoneAndGiveNoErrors) {
  auto rows = rows_of(lines_of_sources("cib", 1, 10));
  rows[9].point.calibration = true;
  const auto outcomes = with_intervals(rows, std::vector<double>(10, 10));
  for (const EvidenceOutcome& each : outcomes) EXPECT_FALSE(each.interval);  // eight others are too few
}

TEST(Intervals, BoundCarriesOneButGivesNoErrorAndNoCoverage) {
  auto rows = rows_of(lines_of_sources("cib", 1, 11));
  rows[10].point.comparison = Comparison::at_least;
  const auto outcomes = with_intervals(rows, {9, 10, 10, 10, 10, 10, 10, 10, 10, 11, 30});
  ASSERT_TRUE(outcomes[10].interval);
  EXPECT_NEAR(outcomes[10].interval->high, 30 / 0.9, 1e-9);
  EXPECT_NEAR(outcomes[0].interval->low, 9 / 1.1, 1e-9);  // 30 for 10 is no error of the kind
  EXPECT_EQ(coverage_of({&outcomes[10]}).rows, 0u);
}

// Errors of a source are alike: without them, the interval shows how far other sources are off.
TEST(Intervals, LeaveOutTheErrorsOfTheOwnSource) {
  std::string lines = lines_of_sources("cib", 1, 9);
  for (int i = 0; i < 20; ++i) lines += fmt::format("cib,READ,{},1,10,0,same\n", 100 + i);
  std::vector<double> ours(29, 20);
  std::fill_n(ours.begin(), 9, 10.0);
  const auto rows = rows_of(lines);
  const auto outcomes = with_intervals(rows, ours);
  for (std::size_t i = 9; i < outcomes.size(); ++i) {
    EXPECT_NEAR(outcomes[i].interval->low, 20, 1e-9);
    EXPECT_EQ(coverage_of({&outcomes[i]}).inside, 0u);
  }
}

// 40 sources of 10 rows. All errors have one distribution, so 80 % of the values are inside. Three standard errors of a
// share of 400 are 6 %; the errors of both kinds of bounds add to it.
TEST(Intervals, EncloseTheNominalShareOfErrorsOfOneDistribution) {
  std::mt19937_64 random(1);
  std::lognormal_distribution<double> error(0.05, 0.2);
  std::string lines;
  std::vector<double> ours;
  for (int i = 0; i < 400; ++i) {
    lines += fmt::format("cib,READ,{},1,10,0,s{}\n", i + 1, i / 10);
    ours.push_back(10 * error(random));
  }
  const auto rows = rows_of(lines);
  const auto outcomes = with_intervals(rows, ours);
  std::vector<const EvidenceOutcome*> all;
  for (const EvidenceOutcome& each : outcomes) all.push_back(&each);
  EXPECT_NEAR(static_cast<double>(coverage_of(all).inside), 320, 24);
  // 10 % and 90 % of the normal distribution are 1.2816 standard deviations away.
  const double figure = *outcomes[0].ours;
  EXPECT_NEAR(std::log(figure / outcomes[0].interval->low), 0.05 + 1.2816 * 0.2, 0.06);
  EXPECT_NEAR(std::log(figure / outcomes[0].interval->high), 0.05 - 1.2816 * 0.2, 0.06);
}

}  // namespace
}  // namespace verbscope
