// Whole runs of send_rate with counters beside them; the tools are stand-ins with the real ones' output and schedule.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/record.hpp"
#include "tests/counters/fake_tools.hpp"
#include "tests/microbench/run_program.hpp"

namespace verbscope {
namespace {

using test::FakeTools;
using test::Ran;
using test::run_program;
using testing::HasSubstr;

Record record_of(const Ran& ran) {
  return record_from_json(parse_json_text(ran.out, "output"), "output");
}

TEST(CountersRun, PcmPcieCountsTheIntervalMinusTheBackground) {
  // Two sockets with 700 lines each in a quiet interval of 84 ms, ten times that under load: while the program has a
  // thread beside the controller and the reader of the tool.
  const FakeTools tools("FAKE_PCM_QUIET_THREADS=2");
  const Ran ran = run_program(
      "send_rate --fabric null --counter_sources pcm-pcie --require_counters -D 1s --warmup 200ms --out_json_file -");
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  const Record record = record_of(ran);
  ASSERT_EQ(record.counters.size(), 1u);
  const CounterReport& report = record.counters[0];
  EXPECT_EQ(report.source, "pcm-pcie");
  EXPECT_EQ(report.node, "server");
  // The counters and the controller have the same interval, except for the time between two statements.
  const double window_s = record.result.at("window_s");
  EXPECT_NEAR(report.window_s, window_s, 0.02);
  const double quiet_per_s = 1400 / 0.084;
  EXPECT_NEAR(report.extra.at("background_per_s").at("PCIRdCur").get<double>(), quiet_per_s, 1e-6);
  EXPECT_NEAR(report.extra.at("raw").at("PCIRdCur").get<double>(), 10 * quiet_per_s * report.window_s, 1);
  EXPECT_NEAR(static_cast<double>(report.events.dma_read_lines), 9 * quiet_per_s * report.window_s, 1);
  EXPECT_NEAR(static_cast<double>(report.events.dma_write_full_lines), 9 * 280 / 0.084 * report.window_s, 1);
  EXPECT_NEAR(static_cast<double>(report.events.mmio_doorbells), 9 * 2800 / 0.084 * report.window_s, 1);
  EXPECT_FALSE(report.sees("mmio_wc_lines"));
  EXPECT_GE(report.extra.at("intervals"), 1);
}

TEST(CountersRun, RecordHasTheReasonOfAMissingSource) {
  const FakeTools tools("FAKE_PCM_FAIL=1");
  const Ran ran = run_program(
      "send_rate --fabric null --counter_sources pcm-pcie,nic,driver -D 20ms --warmup 5ms --out_json_file -");
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_EQ(ran.own_errors(), "");
  const Record record = record_of(ran);
  ASSERT_EQ(record.counters.size(), 3u);
  EXPECT_EQ(record.counters[0].blind,
            "nothing counted: pcm-pcie ended with exit status 1: Skylake Server CPU is required for this tool! Program "
            "aborted");
  EXPECT_THAT(record.counters[1].blind, HasSubstr("nothing counted: "));
  EXPECT_EQ(record.counters[2].source, "driver");
}

TEST(CountersRun, PointFailsIfNoNamedSourceCounts) {
  const FakeTools tools("FAKE_PCM_FAIL=1");
  const Ran ran =
      run_program("send_rate --fabric null --counter_sources pcm-pcie,nic -D 20ms --warmup 5ms --out_json_file -");
  EXPECT_EQ(ran.exit_code, 1);
  const Record record = record_of(ran);
  EXPECT_EQ(record.status, RecordStatus::failed);
  EXPECT_THAT(record.reason, HasSubstr("pcm-pcie ended with exit status 1"));
  EXPECT_GT(record.result.at("rate_mops").get<double>(), 0);
}

TEST(CountersRun, RunFailsIfARequiredSourceIsMissing) {
  const FakeTools tools("FAKE_PCM_FAIL=1");
  const Ran ran = run_program(
      "send_rate --fabric null --counter_sources pcm-pcie --require_counters -D 20ms --warmup 5ms --out_json_file -");
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_EQ(ran.error_lines(), 1) << ran.err;
  EXPECT_THAT(ran.err, HasSubstr("server: counters of pcm-pcie are required: pcm-pcie ended with exit status 1"));
  EXPECT_EQ(record_of(ran).status, RecordStatus::failed);
}

TEST(CountersRun, FailedRecordKeepsTheResultIfARequiredSourceCountsNothing) {
  const FakeTools tools("");
  // --iters end the interval: an interval by time may be repeated with a longer one if the machine is busy.
  const Ran ran = run_program(
      "send_rate --fabric null --counter_sources pcm-pcie --require_counters -n 6400 --warmup 5ms --out_json_file -");
  EXPECT_EQ(ran.exit_code, 1);
  const Record record = record_of(ran);
  EXPECT_EQ(record.status, RecordStatus::failed);
  EXPECT_THAT(record.reason, HasSubstr("no whole interval of 84 ms"));
  EXPECT_GT(record.result.at("rate_mops").get<double>(), 0);
}

TEST(CountersRun, NullAndSimulatedRunsStartNoTools) {
  EXPECT_TRUE(record_of(run_program("send_rate --fabric null -D 5ms --warmup 5ms --out_json_file -")).counters.empty());
  const Record record = record_of(run_program("send_rate --fabric sim:cib -D 20us --warmup 20us --out_json_file -"));
  for (const CounterReport& report : record.counters) EXPECT_EQ(report.source, "sim");
  const Ran refused = run_program("send_rate --fabric sim:cib --counter_sources nic");
  EXPECT_NE(refused.exit_code, 0);
  EXPECT_THAT(refused.err, HasSubstr("--counter_sources nic: with --fabric sim:cib"));
}

TEST(CountersRun, DriverSourceCountsTheRequestsOfTheBenchmark) {
  const Ran ran = run_program(
      "send_rate --fabric null -c UD -s 32 -I 32 -l 16 --counter_sources driver --require_counters -D 20ms --warmup "
      "5ms "
      "--out_json_file -");
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  const Record record = record_of(ran);
  ASSERT_EQ(record.counters.size(), 1u);
  const Json& extra = record.counters[0].extra;
  EXPECT_EQ(record.counters[0].source, "driver");
  EXPECT_TRUE(extra.at("computed").get<bool>());
  const auto sends = extra.at("by_opcode").at("SEND").get<double>();
  // Threads note the interval a little later than the controller. A list of 16 has one doorbell.
  EXPECT_NEAR(sends, record.result.at("window_ops").get<double>(), 0.2 * sends);
  EXPECT_NEAR(extra.at("doorbells").get<double>(), sends / 16, 2);
}

// The counters of the host and of the driver, of the same interval and node.
TEST(CountersRun, DriverAndHostSourcesCountTheSameInterval) {
  const FakeTools tools("FAKE_PCM_QUIET_THREADS=2");
  const Ran ran = run_program(
      "send_rate --fabric null -c UD -s 32 -I 32 -l 16 --counter_sources pcm-pcie,driver --require_counters -D 500ms "
      "--warmup 200ms --out_json_file -");
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  const Record record = record_of(ran);
  ASSERT_EQ(record.counters.size(), 2u);
  const CounterReport &host = record.counters[0], &driver = record.counters[1];
  EXPECT_EQ(host.source, "pcm-pcie");
  EXPECT_EQ(driver.source, "driver");
  EXPECT_EQ(host.node, driver.node);
  EXPECT_NEAR(host.window_s, driver.window_s, 0.02);
  EXPECT_GT(host.events.mmio_doorbells, 0u);
  EXPECT_GT(driver.events.mmio_doorbells, 0u);
  EXPECT_TRUE(host.sees("mmio_doorbells") && driver.sees("mmio_doorbells"));
}

}  // namespace
}  // namespace verbscope
