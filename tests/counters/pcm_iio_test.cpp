// pcm-iio's CSV, written by hand from the tool's source and its lists of events, and counted by hand.
#include "counters/pcm_iio.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/error.hpp"

namespace verbscope {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;

// Two stacks; counts of a whole stack stand in its first row only.
constexpr const char* kSkylake =
    " Intel(r) Performance Counter Monitor\n\n This utility measures IIO information\n\n"
    "Socket,Name,Part,IB write (bytes),IB read (bytes),OB read (bytes),OB write (bytes),IOTLB Hit,IOTLB Miss\n"
    "Socket0,IIO Stack 1 - PCIe0,Part0 (1st x16/x8/x4),6400,12800,40,80,1000,5\n"
    "Socket0,IIO Stack 1 - PCIe0,Part1 (2nd x4),0,0,0,0\n"
    "Socket0,IIO Stack 2 - PCIe1,Part0 (1st x16/x8/x4),100,200,4,8,300,1\n"
    "Socket0,IIO Stack 2 - PCIe1,Part1 (2nd x4),10,20,0,0\n";

constexpr const char* kIceLake =
    "Socket,Root Port,Name,Part,IB write,IB read,OB read,OB write,IOTLB Lookup,IOTLB Miss\n"
    "Socket0,16:02.0,IIO Stack 0 - PCIe0,Part0 (1st x16/x8/x4),6400,12800,40,80,1000,5\n"
    "Socket0,        ,IIO Stack 0 - PCIe0,Part1 (2nd x4),7,7,7,7\n"
    "Socket0,30:02.0,IIO Stack 1 - PCIe1,Part0 (1st x16/x8/x4),100,200,4,8,300,1\n";

Sums sums_of(PcmIioFormat& format, std::string_view text) {
  ToolLog log(format);
  log.feed(text, 1s);
  const auto intervals = log.whole_intervals();
  return intervals.size() == 1 ? intervals[0].sums : Sums{};
}

CounterReport report_of(const PcmIioFormat& format, const Sums& sums) {
  Counted counted{.window_s = 1, .raw = {}, .background_s = 0, .background_per_s = {}};
  for (const auto& [name, value] : sums) counted.raw[name] = static_cast<double>(value);
  return make_report("pcm-iio", format.blind(), counted, format.rules());
}

TEST(PcmIio, SumsAllPortsWhenItKnowsNone) {
  PcmIioFormat format;
  const Sums sums = sums_of(format, kSkylake);
  const CounterReport report = report_of(format, sums);
  EXPECT_EQ(report.events.payload_bytes_to_nic, 12800u + 200 + 20 + 80 + 8);
  EXPECT_EQ(report.events.payload_bytes_to_host, 6400u + 100 + 10 + 40 + 4);
  EXPECT_EQ(sums.at("IOTLB Hit"), 1300u);
  EXPECT_FALSE(report.sees("dma_read_lines"));
  EXPECT_THAT(report.blind, HasSubstr("all root ports are summed"));
}

TEST(PcmIio, CountsOneRootPort) {
  PcmIioFormat format("16:02.0");
  const Sums sums = sums_of(format, kIceLake);
  const CounterReport report = report_of(format, sums);
  EXPECT_EQ(report.events.payload_bytes_to_nic, 12800u + 80);
  EXPECT_EQ(report.events.payload_bytes_to_host, 6400u + 40);
  EXPECT_EQ(sums.at("IOTLB Miss"), 6u);  // the sum over all stacks
  EXPECT_THAT(report.blind, HasSubstr("root port 16:02.0"));
}

TEST(PcmIio, WithoutTheColumnOfRootPortsItSumsAll) {
  PcmIioFormat format("16:02.0");
  EXPECT_EQ(sums_of(format, kSkylake).at("IB write"), 6510u);
  EXPECT_THAT(format.blind(), HasSubstr("all root ports are summed"));
}

TEST(PcmIio, RepeatedHeadersMakeIntervals) {
  PcmIioFormat format;
  ToolLog log(format);
  for (int i = 0; i < 3; ++i) log.feed(kSkylake, Picos(1s) * i);
  EXPECT_EQ(log.whole_intervals().size(), 3u);
}

TEST(PcmIio, DamagedBlocksAreLeftOut) {
  const std::string header = "Socket,Name,Part,IB write,IB read,OB read,OB write,IOTLB Hit\n";
  const std::string row = "Socket0,IIO Stack 1 - PCIe0,Part0,1,2,3,4,5\n";
  for (const std::string damage :
       {"Socket0,IIO Stack 1 - PCIe0,Part0,1,2,3\n", "Socket0,IIO Stack 1 - PCIe0,Part0,1,2,3,4,5,6\n",
        "Socket0,IIO Stack 1 - PCIe0,Part0,1,2,,4\n", "Socket0,IIO Stack 1 - PCIe0,Part0,1,2,3,4", "",
        "Socket0,IIO Stack 1 - PCIe0,Part0,1 K,2,3,4\n"}) {
    PcmIioFormat format;
    ToolLog log(format);
    log.feed(header + row + header + damage, 1s);
    ASSERT_EQ(log.whole_intervals().size(), 1u) << damage;
    EXPECT_EQ(log.whole_intervals()[0].sums.at("IB read"), 2u);
  }
}

TEST(PcmIio, ColumnsAreFoundByTheirNames) {
  // Release 202509 begins with the date and the time; any other order says the same.
  for (const char* text : {"Date,Time,Socket,Root Port,Name,Part,IB write,IB read,OB read,OB write,IOTLB Miss\n"
                           "2025-10-01,12:00:00.512,Socket0,16:02.0,IIO Stack 0,Part0,6400,12800,40,80,5\n"
                           "2025-10-01,12:00:00.512,Socket0,        ,IIO Stack 0,Part1,7,7,7,7\n",
                           "OB write,Part,Socket,OB read,IB read,Name,IB write,Root Port,IOTLB Miss,Time\n"
                           "80,Part0,Socket0,40,12800,IIO Stack 0,6400,16:02.0,5,12:00:00\n"
                           "7,Part1,Socket0,7,7,IIO Stack 0,7,        ,0,12:00:00\n"}) {
    PcmIioFormat format("16:02.0");
    const Sums sums = sums_of(format, text);
    const CounterReport report = report_of(format, sums);
    EXPECT_EQ(report.events.payload_bytes_to_nic, 12800u + 80) << text;
    EXPECT_EQ(report.events.payload_bytes_to_host, 6400u + 40) << text;
    EXPECT_EQ(sums.at("IOTLB Miss"), 5u) << text;
  }
}

TEST(PcmIio, RefusesCountsThatItDoesNotKnow) {
  PcmIioFormat format;
  EXPECT_THROW(sums_of(format, "Socket,Name,Part,Clockticks,IB write,IB read,OB read\n"), Error);
  EXPECT_THROW(sums_of(format, "Socket,Name,Part\n"), Error);
}

}  // namespace
}  // namespace verbscope
