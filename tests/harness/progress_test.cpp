// The printed progress of a sweep.
#include "harness/sweep/progress.hpp"

#include "tests/harness/fakes.hpp"

namespace verbscope {
namespace {

std::string shown(bool terminal) {
  TempFolder folder;
  std::FILE* out = std::fopen(folder.file("out").c_str(), "w");
  Progress progress(TimeLeft(3), out, terminal);
  progress.started("size=1");
  progress.finished(0, "size=1", "10.00 Mops", std::chrono::seconds(2));
  progress.started("size=2");
  progress.finished(1, "size=2", "20.00 Mops", std::chrono::seconds(4));
  std::fclose(out);
  return read_text(folder.file("out"));
}

TEST(Progress, PrintsOneLinePerPointWithTheRemainingTime) {
  // After 1 of 3 points, which took 2 s: 4 s left. After points of 2 s and 4 s: 3 s left.
  EXPECT_EQ(shown(false),
            "[1/3] size=1: 10.00 Mops (2.0 s, 4.0 s left)\n[2/3] size=2: 20.00 Mops (4.0 s, 3.0 s left)\n");
}

TEST(Progress, RewritesOneLineOnATerminal) {
  const std::string text = shown(true);
  EXPECT_THAT(text, testing::StartsWith("\r[1/3] size=1 "));
  EXPECT_THAT(text, testing::HasSubstr("\r[2/3, 4.0 s left] size=2 "));
}

std::vector<Point> points_with(const std::vector<int>& clients) {
  std::vector<Point> points;
  for (const int n : clients) points.push_back({.benchmark = "b", .params = Json{{"clients", n}, {"size", 32}}});
  return points;
}

TEST(Progress, EstimatesTimeFromANumericOption) {
  TimeLeft left(points_with({4, 20, 100, 500, 1000}));
  EXPECT_EQ(left.left().count(), 0);
  const double seconds[] = {0.1, 0.5, 2.5};  // 25 ms per client
  for (std::size_t i = 0; i < 3; ++i) left.ended(i, std::chrono::duration<double>(seconds[i]));
  EXPECT_NEAR(left.left().count(), 37.5, 4);  // 12.5 s and 25 s; the mean would say 2 s
}

TEST(Progress, EstimatesTimeFromAWordAndABenchmark) {
  std::vector<Point> points;
  for (const char* store : {"fast", "slow", "fast", "slow", "slow"}) {
    points.push_back({.benchmark = "b", .params = Json{{"store", store}}});
  }
  TimeLeft left(points);
  left.ended(0, std::chrono::seconds(1));
  left.ended(1, std::chrono::seconds(9));
  EXPECT_NEAR(left.left().count(), 1 + 9 + 9, 1);
}

TEST(Progress, FormatsDurations) {
  using std::chrono::duration;
  EXPECT_EQ(duration_text(duration<double>(0.04)), "0.0 s");
  EXPECT_EQ(duration_text(duration<double>(12.3)), "12 s");
  EXPECT_EQ(duration_text(duration<double>(200)), "3 min 20 s");
  EXPECT_EQ(duration_text(duration<double>(7500)), "2 h 05 min");
}

}  // namespace
}  // namespace verbscope
