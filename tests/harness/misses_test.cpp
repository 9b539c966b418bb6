// Published rows that the simulator misses, with and without a known reason.
#include "harness/evidence/misses.hpp"

#include "tests/harness/evidence_rows.hpp"

namespace verbscope {
namespace {

using testing::HasSubstr;

// Two published rows, of 100 Mops and of at least 5 threads.
std::vector<EvidenceRow> published_rows() {
  PublishedPoint rate;
  rate.id = "rate";
  rate.value = 100;
  rate.known_miss = "no model of it";
  PublishedPoint place;
  place.id = "place";
  place.value = 5;
  place.comparison = Comparison::at_least;
  place.along = CurvePlace{.option = "threads", .values = {1, 2, 3, 4, 5}};
  return {{.point = rate, .not_run = ""}, {.point = place, .not_run = ""}};
}

std::string misses(const std::vector<EvidenceRow>& rows, double rate, double place) {
  std::vector<EvidenceOutcome> outcomes(2);
  for (std::size_t i = 0; i < 2; ++i) {
    outcomes[i].row = &rows[i];
    outcomes[i].ours = i == 0 ? rate : place;
    outcomes[i].error_percent = rows[i].point.deviation_of(*outcomes[i].ours);
  }
  return miss_lines(outcomes);
}

TEST(Misses, KnownOnesHaveAReasonUntilTheyAreWithinTheLimit) {
  auto rows = published_rows();
  EXPECT_EQ(misses(rows, 120, 5), "known misses:\n  rate: 120.0 for 100, +20.0 %: no model of it\n");
  EXPECT_EQ(misses(rows, 109, 5),
            "no longer misses:\n  rate: 109.0 for 100, +9.0 %: within 10 %; remove its known_miss\n");
  rows[0].point.known_miss.clear();
  EXPECT_EQ(misses(rows, 120, 5),
            "published rows beyond their limit without a known reason:\n  rate: 120.0 for 100, +20.0 %\n");
}

// 4 is a step from 5: no error, unless the row is a known miss.
TEST(Misses, StepOfACurveDoesNotEndAKnownMiss) {
  auto rows = published_rows();
  EXPECT_EQ(misses(rows, 120, 4), misses(rows, 120, 5));
  rows[1].point.known_miss = "fewer cores";
  EXPECT_THAT(misses(rows, 120, 4), HasSubstr("  place: 4.00 for >= 5, -20.0 %: fewer cores\n"));
}

}  // namespace
}  // namespace verbscope
