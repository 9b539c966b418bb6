// Hosts of which one is slow, and points that are disturbed.
#include "harness/learn/survey.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace verbscope {
namespace {

std::vector<Candidate> points(int count) {
  std::vector<Candidate> out;
  for (int i = 0; i < count; ++i)
    out.push_back({.point = {.benchmark = "write_rate", .place = static_cast<std::size_t>(i)}, .kind = ""});
  return out;
}

// A rate of 10 Mops, times the host's factor at this point.
template <class Factor>
Survey survey(const std::vector<std::string>& hosts, Factor factor) {
  return survey_of(hosts, points(4), [&](const Point& point, std::size_t host) {
    Record record;
    record.benchmark = "write_rate";
    record.result["rate_mops"] = 10 * factor(point.place, host);
    return std::optional(record);
  });
}

TEST(Survey, LeavesOutTheHostThatIsSlowAtTwoPoints) {
  const Survey found =
      survey({"a", "b", "c"}, [](std::size_t point, std::size_t host) { return host == 1 && point < 2 ? 0.8 : 1; });
  ASSERT_EQ(found.slow.size(), 1u);
  EXPECT_EQ(found.slow[0].name, "b");
  EXPECT_NEAR(found.slow[0].worst_percent, -20, 0.1);
  EXPECT_THAT(found.good, testing::ElementsAre(0, 2));
  EXPECT_EQ(found.records.size(), 8u);
}

TEST(Survey, KeepsHostsWithOneDisturbedPointBesideASlowHost) {
  // Host 3 is slow; hosts 0 and 1 have one disturbed point each.
  const Survey found = survey({"a", "b", "c", "d"}, [](std::size_t point, std::size_t host) {
    return host == 3 ? 0.8 : host == point && point < 2 ? 0.5 : 1.0;
  });
  ASSERT_EQ(found.slow.size(), 1u);
  EXPECT_EQ(found.slow[0].name, "d");
}

TEST(Survey, KeepsHostsThatDifferByNoise) {
  EXPECT_THAT(survey({"a", "b"}, [](std::size_t, std::size_t host) { return host == 0 ? 1 : 0.97; }).slow,
              testing::IsEmpty());
}

Point point_of(int size) {
  return {.benchmark = "write_rate", .params = {{"size", size}}};
}

// Three hosts measure the points of these sizes. The rates of the last host are multiplied by `factor`.
std::vector<MeasuredFigure> figures(const std::vector<int>& sizes, double factor) {
  std::vector<MeasuredFigure> out;
  for (const int size : sizes) {
    for (const char* host : {"a", "b", "c"}) {
      const double rate = host == std::string("c") ? 10 * factor : 10;
      out.push_back({.point = point_of(size), .key = "rate_mops", .figure = rate, .server = host});
    }
  }
  return out;
}

std::vector<SlowHost> slow_among(const std::vector<MeasuredFigure>& figures) {
  return slow_hosts(figures, {{.point = point_of(16), .kind = ""}, {.point = point_of(32), .kind = ""}});
}

TEST(SlowHosts, AreFoundInFiguresOfTheSurvey) {
  const std::vector<SlowHost> found = slow_among(figures({16, 32}, 0.7));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].name, "c");
  EXPECT_EQ(found[0].points, 2u);
}

TEST(SlowHosts, NeedTwoDifferentPoints) {
  EXPECT_THAT(slow_among(figures({16}, 0.7)), testing::IsEmpty());
  EXPECT_THAT(slow_among(figures({16, 32}, 0.97)), testing::IsEmpty());
}

// Doubtful points are measured on a second host: a host with two disturbed figures is no slow host.
TEST(SlowHosts, OtherPointsDoNotCount) {
  EXPECT_THAT(slow_among(figures({64, 128, 256}, 0.7)), testing::IsEmpty());
}

TEST(Survey, EndsWhenInterrupted) {
  EXPECT_TRUE(
      survey_of({"a"}, points(1), [](const Point&, std::size_t) { return std::optional<Record>(); }).interrupted);
}

}  // namespace
}  // namespace verbscope
