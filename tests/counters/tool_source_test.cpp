// A tool beside a benchmark. The fake tools have the output and timing of the real ones, and are started like them.
#include "counters/tool_source.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <thread>

#include "common/error.hpp"
#include "counters/tool_formats.hpp"
#include "tests/common/temp_dir.hpp"
#include "tests/counters/fake_tools.hpp"

namespace verbscope {
namespace {

using namespace std::chrono_literals;
using test::FakeTools;
using testing::HasSubstr;

// Waits until done() is true, for at most a minute.
template <class Done>
void wait_until(Done&& done) {
  const auto deadline = std::chrono::steady_clock::now() + 60s;
  while (!done()) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline) << "waited for a minute";
    std::this_thread::sleep_for(1ms);
  }
}

// Starts the source, measures the background, and then a window of this length.
void run(CounterSource& source, std::chrono::milliseconds window) {
  source.start();
  source.read(Moment::background_begin);
  wait_until([&source] { return source.background_done(); });
  source.read(Moment::background_end);
  source.read(Moment::window_begin);
  std::this_thread::sleep_for(window);  // the window
  source.read(Moment::window_end);
}

ToolSource pcie_source() {
  return {pcm_pcie_tool(Picos(0), 60s), std::make_unique<PcmPcieFormat>()};
}

TEST(ToolSource, CountsWholeIntervalsAndScalesThemToTheWindow) {
  const FakeTools tools("");
  ToolSource source = pcie_source();
  run(source, 700ms);
  const CounterReport report = source.report(0);
  // 700 lines on each of two sockets in every interval of 84 ms, even if lines arrive late.
  const double window_s = report.window_s;
  EXPECT_GE(window_s, 0.7);
  EXPECT_EQ(report.extra.at("raw").at("PCIRdCur"), std::llround(1400 / 0.084 * window_s));
  EXPECT_EQ(report.extra.at("raw").at("PCIRdCur (Miss)"), std::llround(700 / 0.084 * window_s));
  const std::size_t intervals = report.extra.at("intervals");
  EXPECT_GE(intervals, 1u);
  EXPECT_LE(intervals, static_cast<std::size_t>(window_s / 0.084));
  EXPECT_NEAR(report.extra.at("scaling").get<double>(), window_s / (0.084 * static_cast<double>(intervals)), 1e-9);
  // The background has the same rate, so the net is 0.
  EXPECT_EQ(report.events.dma_read_lines, 0u);
  EXPECT_NEAR(report.extra.at("background_per_s").at("PCIRdCur").get<double>(), 1400 / 0.084, 1e-6);
}

TEST(ToolSource, IgnoresDamagedIntervals) {
  const FakeTools tools("FAKE_PCM_DAMAGE=1");
  ToolSource source = pcie_source();
  run(source, 900ms);
  const CounterReport report = source.report(0);
  EXPECT_EQ(report.extra.at("raw").at("WiL"), std::llround(2 * 1400 / 0.084 * report.window_s));
  EXPECT_GE(report.extra.at("intervals_damaged"), 1);
}

TEST(ToolSource, FailsIfTheWindowIsShorterThanAnInterval) {
  const FakeTools tools("");
  ToolSource source = pcie_source();
  run(source, 20ms);
  EXPECT_THAT(message_of<Error>([&] { source.report(0); }),
              HasSubstr("no whole interval of 84 ms in the window of 0.0"));
}

TEST(ToolSource, ReportsAToolThatIsNotInstalled) {
  ToolSource source({"pcm-cat", {}, 84}, std::make_unique<PcmPcieFormat>());
  EXPECT_EQ(message_of<Error>([&] { source.start(); }),
            "pcm-cat is not installed (not in PATH, /usr/sbin or /usr/local/sbin)");
}

TEST(ToolSource, QuotesAToolThatFailsAtStart) {
  const FakeTools tools("FAKE_PCM_FAIL=1");
  ToolSource source = pcie_source();
  source.start();
  const std::string failure = message_of<Error>([&] { wait_until([&] { return source.background_done(); }); });
  EXPECT_EQ(failure,
            "pcm-pcie ended with exit status 1: Skylake Server CPU is required for this tool! Program aborted");
}

TEST(ToolSource, QuotesAToolThatEndsInTheWindow) {
  const FakeTools tools("FAKE_PCM_END_AFTER=4");
  ToolSource source = pcie_source();
  run(source, 700ms);
  EXPECT_EQ(message_of<Error>([&] { source.report(0); }),
            "pcm-pcie ended with exit status 3: the counters are in use by somebody else");
}

TEST(ToolSource, FailsIfTheToolPrintsNothing) {
  const FakeTools tools("FAKE_PCM_SILENT=1");
  Tool tool = pcm_pcie_tool(Picos(0), 60s);
  tool.start_limit = 100ms;
  ToolSource source(tool, std::make_unique<PcmPcieFormat>());
  source.start();
  const std::string failure = message_of<Error>([&] { wait_until([&] { return source.background_done(); }); });
  EXPECT_THAT(failure, HasSubstr("pcm-pcie printed 0 whole intervals of 84 ms in 0.4 s"));
}

TEST(ToolSource, PcmIioCountsTheBytesOfTheRootPort) {
  const FakeTools tools("");
  ToolSource source(pcm_iio_tool(Picos(0), 60s), std::make_unique<PcmIioFormat>("3a:00.0"));
  run(source, 1000ms);
  const CounterReport report = source.report(0);
  EXPECT_EQ(report.extra.at("raw").at("IB read"), std::llround(12800 * report.window_s));
  EXPECT_EQ(report.events.payload_bytes_to_nic, 0u);  // the background has the same rate
}

// Releases of pcm-pcie that interpret the interval differently. Devices read 1e8 lines per second.
class PcmRelease : public testing::TestWithParam<const char*> {};

TEST_P(PcmRelease, CountsTheRealRate) {
  const FakeTools tools(std::string("FAKE_PCM_RELEASE=") + GetParam());
  // Long enough for two intervals of 1 s that take 2 s each.
  ToolSource source(pcm_pcie_tool(6500ms, 8s), std::make_unique<PcmPcieFormat>());
  run(source, 6500ms);
  const CounterReport report = source.report(0);
  EXPECT_NEAR(report.extra.at("raw").at("PCIRdCur").get<double>() / report.window_s, 1e8, 3e6);
}

INSTANTIATE_TEST_SUITE_P(, PcmRelease, testing::Values("202003", "202201", "202302"));

TEST(ToolSource, FailsIfTheToolDoesNotKeepItsInterval) {
  // The window is too short for whole seconds.
  const FakeTools tools("FAKE_PCM_RELEASE=202201");
  ToolSource source(pcm_pcie_tool(2s, 8s), std::make_unique<PcmPcieFormat>());
  source.start();
  source.read(Moment::background_begin);
  const std::string failure = message_of<Error>([&] { wait_until([&] { return source.background_done(); }); });
  EXPECT_THAT(failure, HasSubstr("pcm-pcie does not keep its interval"));
  EXPECT_THAT(failure, HasSubstr("--duration 5 s or more"));
}

TEST(ToolSource, CountsWithPcmIioRelease202509) {
  const FakeTools tools("FAKE_PCM_RELEASE=202509");
  ToolSource source(pcm_iio_tool(Picos(0), 60s), std::make_unique<PcmIioFormat>("3a:00.0"));
  run(source, 1000ms);
  const CounterReport report = source.report(0);
  EXPECT_EQ(report.extra.at("raw").at("IB read"), std::llround(12800 * report.window_s));
}

TEST(ToolSource, UsesTheFixedIntervalOfNeoHost) {
  const FakeTools tools("");
  ToolSource source(neo_host_tool("", 60s), std::make_unique<NeoHostFormat>(), "neo-host");
  run(source, 700ms);
  const CounterReport report = source.report(0);
  EXPECT_EQ(report.source, "neo-host");
  EXPECT_EQ(report.extra.at("raw").at("ICM Cache Miss"), std::llround(38000 * report.window_s));
  EXPECT_EQ(report.extra.at("analysis").at("PCIe Avg Latency [NS]"), 403);
  EXPECT_GE(report.extra.at("interval_s").get<double>(), 0.1);
}

TEST(ToolSource, RequestsIntervalsThatEventGroupsDivideEvenly) {
  for (const Picos window : {Picos(0), Picos(10ms), Picos(1s), Picos(3s), Picos(60s)}) {
    const Tool tool = pcm_pcie_tool(window, 8s);
    // The tool reads its delay as (uint)(delay * 1000).
    EXPECT_EQ(static_cast<std::uint32_t>(std::strtod(tool.arguments[0].c_str(), nullptr) * 1000), tool.interval_ms);
    EXPECT_EQ(tool.interval_ms % (tool.interval_ms < 1000 ? 84 : 1000), 0u);
    EXPECT_GE(tool.interval_ms, 84u);
    EXPECT_LE(tool.interval_ms, 1000u);
  }
  EXPECT_EQ(pcm_pcie_tool(3s, 8s).interval_ms, 336u);      // eight in 3 s would be 375
  EXPECT_EQ(pcm_pcie_tool(3s, 1600ms).interval_ms, 168u);  // and in 1.6 s 200
}

}  // namespace
}  // namespace verbscope
