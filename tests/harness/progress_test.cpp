// The progress of a running sweep as a person sees it.
#include "harness/sweep/progress.hpp"

#include "tests/harness/fakes.hpp"

namespace verbscope {
namespace {

std::string shown(bool terminal) {
  TempFolder folder;
  std::FILE* out = std::fopen(folder.file("out").c_str(), "w");
  Progress progress(3, out, terminal);
  progress.started("size=1");
  progress.finished("size=1", "10.00 Mops", std::chrono::seconds(2));
  progress.started("size=2");
  progress.finished("size=2", "20.00 Mops", std::chrono::seconds(4));
  std::fclose(out);
  return read_text(folder.file("out"));
}

TEST(Progress, PlainLinesOnePerPointWithTheTimeLeft) {
  // After one of 2 s two are left: 4 s. After 2 s and 4 s one of 3 s on average is left.
  EXPECT_EQ(shown(false),
            "[1/3] size=1: 10.00 Mops (2.0 s, 4.0 s left)\n[2/3] size=2: 20.00 Mops (4.0 s, 3.0 s left)\n");
}

TEST(Progress, OnATerminalTheRunningPointIsOnOneLineThatIsRewritten) {
  const std::string text = shown(true);
  EXPECT_THAT(text, testing::StartsWith("\r[1/3] size=1 "));
  EXPECT_THAT(text, testing::HasSubstr("\r[2/3, 4.0 s left] size=2 "));
}

TEST(Progress, DurationsReadWell) {
  using std::chrono::duration;
  EXPECT_EQ(duration_text(duration<double>(0.04)), "0.0 s");
  EXPECT_EQ(duration_text(duration<double>(12.3)), "12 s");
  EXPECT_EQ(duration_text(duration<double>(200)), "3 min 20 s");
  EXPECT_EQ(duration_text(duration<double>(7500)), "2 h 05 min");
}

}  // namespace
}  // namespace verbscope
