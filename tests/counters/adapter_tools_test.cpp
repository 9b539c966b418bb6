// NVIDIA NEO-Host and rdma-statistic: their output as public dumps and manual pages show it, counted by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "common/error.hpp"
#include "counters/neo_host.hpp"
#include "counters/rdma_statistic.hpp"
#include "tests/counters/fake_tools.hpp"

namespace verbscope {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::Pair;

constexpr const char* kTable =
    "-D- -I- Post request {'module': 'performance', 'id': 245} to neohost\n"
    "=========================================================================================\n"
    "|| Counter Name              || Counter Value   ||| Performance Analysis  || Analysis Value [Units]           ||\n"
    "=========================================================================================\n"
    "|| Level 0 MTT Cache Hit     || 5               |||                                Bandwidth                  ||\n"
    "|| Level 0 MTT Cache Miss    || 12              ||-------------------------------------------------------------\n"
    "|| ICM Cache Miss            || 38              ||| RX BandWidth         || 1.5            [Gb/s]            ||\n"
    "|| Chip Frequency            || 429.9913        ||=============================================================\n"
    "|| Receive WQE Cache Miss    || 7               ||| PCIe Avg Latency     || 403            [NS]              ||\n"
    "|| RX_PSA0 Steering Pipe 0   || 0               ||\n"
    "=====================================================\n";

TEST(NeoHost, ReadsBothHalvesOfItsTable) {
  NeoHostFormat format;
  ToolLog log(format);
  log.feed(kTable, 1s);
  log.feed(kTable, 2s);
  const auto intervals = log.whole_intervals();
  ASSERT_EQ(intervals.size(), 2u);
  EXPECT_THAT(intervals[0].sums, ElementsAre(Pair("ICM Cache Miss", 38), Pair("Level 0 MTT Cache Hit", 5),
                                             Pair("Level 0 MTT Cache Miss", 12), Pair("RX_PSA0 Steering Pipe 0", 0),
                                             Pair("Receive WQE Cache Miss", 7)));
  const Json analysis = format.extra().at("analysis");
  EXPECT_EQ(analysis.at("PCIe Avg Latency [NS]"), 403);
  EXPECT_EQ(analysis.at("RX BandWidth [Gb/s]"), 1.5);
  EXPECT_EQ(analysis.at("Chip Frequency"), 429.9913);
}

TEST(NeoHost, ATableThatIsCutOffIsLeftOut) {
  NeoHostFormat format;
  ToolLog log(format);
  const std::string text = kTable;
  log.feed(text, 1s);
  log.feed(text.substr(0, text.find("|| Receive WQE")), 2s);
  EXPECT_EQ(log.blocks(), 2u);
  EXPECT_EQ(log.whole_intervals().size(), 1u);
}

TEST(RdmaStatistic, CountsOfQpsHaveTheirNumbers) {
  const Sums counts = rdma_statistic_counts(
      R"([{"ifindex":1,"ifname":"mlx5_0","port":1,"cntn":4,"lqpn":[178],"rx_write_requests":9,"out_of_buffer":0},)"
      R"({"ifname":"mlx5_0","port":2,"cntn":5,"pid":77,"lqpn":[179,180],"rx_write_requests":3}])");
  EXPECT_THAT(counts, ElementsAre(Pair("port1/qp178/out_of_buffer", 0), Pair("port1/qp178/rx_write_requests", 9),
                                  Pair("port2/counter5/rx_write_requests", 3)));
  EXPECT_TRUE(rdma_statistic_counts("[]").empty());
  EXPECT_THROW(rdma_statistic_counts("error: Operation not supported"), Error);
}

// Two QPs share one counter; the other is alone.
TEST(RdmaStatistic, CountsWhatRoseInTheWindow) {
  const test::FakeTools tools("");
  RdmaStatisticSource source("mlx5_0", {1});
  source.start();
  source.read(Moment::background_begin);
  source.read(Moment::background_end);
  source.read(Moment::window_begin);
  std::this_thread::sleep_for(300ms);  // the window
  source.read(Moment::window_end);
  const CounterReport report = source.report(0);
  // Readings take time themselves, some of it before the tool looks at its clock.
  EXPECT_NEAR(report.extra.at("raw").at("port1/qp178/rx_write_requests").get<double>() / report.window_s, 1000, 500);
  EXPECT_TRUE(report.extra.at("raw").contains("port1/counter5/rx_write_requests"));
}

}  // namespace
}  // namespace verbscope
