// Outputs of counting tools, written by hand from the tools' sources, public dumps and lists of events, with their
// counts.
#include "counters/tool_formats.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/error.hpp"

namespace verbscope {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

// The report of a window of 1 s with these sums and no background.
CounterReport report_of(const ToolFormat& format, const Sums& sums) {
  Counted counted{.window_s = 1, .raw = {}, .background_s = 0, .background_per_s = {}};
  for (const auto& [name, value] : sums) counted.raw[name] = static_cast<double>(value);
  return make_report("tool", format.blind(), counted, format.rules());
}

struct Parsed {
  PcmPcieFormat format;
  ToolLog log{format};
  explicit Parsed(std::string_view text) { log.feed(text, 1s); }
  Sums only() {
    const auto intervals = log.whole_intervals();
    return intervals.size() == 1 ? intervals[0].sums : Sums{};
  }
};

TEST(PcmPcie, SandyBridgeSumsSnoopedAndUnsnooped) {
  Parsed parsed(
      "Skt,PCIeRdCur,PCIeNSRd,PCIeWiLF,PCIeItoM,PCIeNSWr,PCIeNSWrF\n"
      "0,1000,24,36,480,12,60\n"
      "1,200,0,0,96,0,12\n");
  const CounterReport report = report_of(parsed.format, parsed.only());
  EXPECT_EQ(report.events.dma_read_lines, 1000u + 24 + 200);
  EXPECT_EQ(report.events.dma_write_full_lines, 36u + 480 + 60 + 96 + 12);
  EXPECT_EQ(report.events.dma_write_partial_lines, 12u);
  EXPECT_FALSE(report.sees("mmio_doorbells"));
  EXPECT_FALSE(report.sees("mmio_wc_lines"));
  EXPECT_THAT(report.blind, HasSubstr("MMIO"));
}

TEST(PcmPcie, HaswellIgnoresReadsByCores) {
  Parsed parsed(
      "Skt,PCIRdCur,RFO,CRd,DRd,ItoM,PRd,WiL\n"
      "0,700,14,9800,8400,280,28,1400\n");
  const CounterReport report = report_of(parsed.format, parsed.only());
  EXPECT_EQ(report.events.dma_read_lines, 700u);
  EXPECT_EQ(report.events.dma_write_full_lines, 280u);
  EXPECT_EQ(report.events.dma_write_partial_lines, 14u);
  EXPECT_EQ(report.events.mmio_doorbells, 1400u);
  EXPECT_FALSE(report.sees("mmio_wc_lines"));
  EXPECT_FALSE(report.sees("bytes_to_nic"));
  EXPECT_EQ(report.extra.at("raw").at("PRd"), 28);
}

TEST(PcmPcie, IceLakeCountsPartialWrites) {
  Parsed parsed("Skt,PCIRdCur,ItoM,ItoMCacheNear,UCRdF,WiL\n0,10,20,30,40,50\n1,1,2,3,4,5\n");
  const CounterReport report = report_of(parsed.format, parsed.only());
  EXPECT_EQ(report.events.dma_read_lines, 11u);
  EXPECT_EQ(report.events.dma_write_full_lines, 22u);
  EXPECT_EQ(report.events.dma_write_partial_lines, 33u);
  EXPECT_EQ(report.events.mmio_doorbells, 55u);
}

TEST(PcmPcie, SapphireRapidsSeparatesWriteCombinedLinesFromDoorbells) {
  Parsed parsed("Skt,PCIRdCur,ItoM,ItoMCacheNear,UCRdF,WiL,WCiL,WCiLF\n0,300,600,900,3,6,12,24\n");
  const CounterReport report = report_of(parsed.format, parsed.only());
  EXPECT_EQ(report.events.mmio_wc_lines, 24u);
  EXPECT_EQ(report.events.mmio_doorbells, 6u + 12);
  EXPECT_TRUE(report.sees("mmio_wc_lines"));
}

TEST(PcmPcie, KeepsMissesSeparateFromTotals) {
  Parsed parsed(
      "Skt,PCIRdCur,ItoM,ItoMCacheNear,UCRdF,WiL,PCIe Rd (B),PCIe Wr (B)\n"
      "0,100,50,8,2,4,6400,3712(Total)\n"
      "0,30,20,8,2,4,1920,1792(Miss)\n"
      "0,70,30,0,0,0,4480,1920(Hit)\n");
  const Sums sums = parsed.only();
  EXPECT_EQ(sums.at("PCIRdCur"), 100u);
  EXPECT_EQ(sums.at("PCIRdCur (Miss)"), 30u);
  EXPECT_FALSE(sums.contains("PCIRdCur (Hit)"));  // total minus misses
  EXPECT_EQ(sums.at("WiL"), 4u);
  EXPECT_FALSE(sums.contains("PCIe Rd (B)"));
}

TEST(PcmPcie, StartsAnIntervalAtEachHeader) {
  PcmPcieFormat format;
  ToolLog log(format);
  log.feed("Skt,PCIRdCur,ItoM,ItoMCacheNear,UCRdF,WiL\n0,1,0,0,0,0\n1,2,0,0,0,0\n", 1s);
  log.feed("Skt,PCIRdCur,ItoM,ItoMCacheNear,UCRdF,WiL\n0,10,0,0,0,0\n1,20,0,0,0,0\n", 2s);
  const auto intervals = log.whole_intervals();
  ASSERT_EQ(intervals.size(), 2u);
  EXPECT_EQ(intervals[0].sums.at("PCIRdCur"), 3u);
  EXPECT_EQ(intervals[0].end, Picos(1s));
  EXPECT_EQ(intervals[1].sums.at("PCIRdCur"), 30u);
  EXPECT_EQ(intervals[1].end, Picos(2s));
}

TEST(PcmPcie, FindsColumnsByName) {
  Parsed mixed("Date,Time,WiL,ItoM,Other,PCIRdCur,Skt,UCRdF,ItoMCacheNear\n2025-10-01,12:00:00,5,2,9,1,0,4,3\n");
  EXPECT_THAT(mixed.only(), ElementsAre(Pair("ItoM", 2), Pair("ItoMCacheNear", 3), Pair("PCIRdCur", 1),
                                        Pair("UCRdF", 4), Pair("WiL", 5)));
  // Release 202003 has Sandy Bridge's name for the reads of Haswell.
  Parsed old(
      "Skt,PCIeRdCur,RFO,CRd,DRd,ItoM,PRd,WiL\n0,7,6,5,4,3,2,1(Total)\n0,3,3,2,2,1,1,0(Miss)\n0,4,3,3,2,2,1,1(Hit)\n");
  const Sums sums = old.only();
  EXPECT_EQ(sums.at("PCIRdCur"), 7u);
  EXPECT_EQ(sums.at("PCIRdCur (Miss)"), 3u);
  EXPECT_EQ(report_of(old.format, sums).events.dma_read_lines, 7u);
}

TEST(PcmPcie, IgnoresOtherText) {
  Parsed parsed(
      "\n Processor Counter Monitor: PCIe Bandwidth Monitoring Utility\n"
      "   PCIe read events (PCI devices reading from memory, 64 bytes each):\n"
      "12,34\n"
      "Update every 0.1 seconds\r\n"
      "Skt,PCIRdCur,ItoM,ItoMCacheNear,UCRdF,WiL\r\n"
      "INFO: the driver says hello, again\n"
      "0,1,2,3,4,5\r\n");
  EXPECT_THAT(parsed.only(), ElementsAre(Pair("ItoM", 2), Pair("ItoMCacheNear", 3), Pair("PCIRdCur", 1),
                                         Pair("UCRdF", 4), Pair("WiL", 5)));
}

// A damaged block after a good one of two rows. Only the good block counts.
class DamagedBlock : public testing::TestWithParam<const char*> {};

TEST_P(DamagedBlock, IsIgnored) {
  const std::string header = "Skt,PCIRdCur,ItoM,ItoMCacheNear,UCRdF,WiL\n";
  Parsed parsed(header + "0,1,2,3,4,5\n1,1,2,3,4,5\n" + header + GetParam());
  EXPECT_EQ(parsed.log.blocks(), 2u);
  EXPECT_EQ(parsed.only().at("PCIRdCur"), 2u);
}

INSTANTIATE_TEST_SUITE_P(, DamagedBlock,
                         testing::Values("0,1,2,3\n1,1,2,3,4,5\n",            // a short row
                                         "0,1,2,3,4,5\n",                     // a row is missing
                                         "0,1,2,3,4,5\n1,1,2,3,4",            // cut in the last line
                                         "0,1,2,3,4,5\n1,1,2,3,4,5",          // cut before its end: 5 may be 50
                                         "0,1,2,3,4,5,6\n1,1,2,3,4,5\n",      // more than the header has
                                         "0,1,2,x,4,5\n1,1,2,3,4,5\n",        // no number
                                         "0,1,2,-3,4,5\n1,1,2,3,4,5\n",       // a negative one
                                         "0,1,2,3,4,5(Total\n1,1,2,3,4,5\n",  // an unknown kind
                                         "0,99999999999999999999,2,3,4,5\n1,1,2,3,4,5\n",    // over 64 bits
                                         "0,18446744073709551615,2,3,4,5\n1,1,2,3,4,5\n"));  // their sum is

TEST(PcmPcie, AcceptsPiecesCutAnywhere) {
  const std::string text =
      "text\nSkt,PCIRdCur,RFO,CRd,DRd,ItoM,PRd,WiL\n0,1,2,3,4,5,6,7\nSkt,PCIRdCur,RFO,CRd,DRd,ItoM,PRd,WiL\n0,7,6,5,4,"
      "3,2,1\n";
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    PcmPcieFormat format;
    ToolLog log(format);
    log.feed(text.substr(0, cut), 1s);
    log.feed(text.substr(cut), 1s);
    ASSERT_EQ(log.whole_intervals().size(), 2u) << cut;
    EXPECT_EQ(log.whole_intervals()[1].sums.at("WiL"), 1u);
  }
}

TEST(PcmPcie, RejectsUnknownColumns) {
  for (const char* text : {"Skt,PCIRdCur,Cat\n", "Skt,PCIRdCur,PCIeRdCur,RFO,CRd,DRd,ItoM,PRd,WiL\n",
                           "Skt,PCIRdCur,ItoM,ItoMCacheNear,UCRdF,WiL\nSkt,PCIRdCur,RFO,CRd,DRd,ItoM,PRd,WiL\n"}) {
    EXPECT_THROW(Parsed{text}, Error) << text;
  }
}

TEST(PcmPcie, IgnoresOverlongLines) {
  Parsed parsed("Skt,PCIRdCur,ItoM,ItoMCacheNear,UCRdF,WiL\n0,1,2,3,4,5\n0,1,2,3,4," + std::string(100'000, '5') +
                "\n");
  EXPECT_EQ(parsed.only().at("WiL"), 5u);
}

TEST(PcmPcie, CountsWholeMillisecondsPerEventGroup) {
  // 14 groups of 7 ms in 100 ms; 84 ms divide evenly on every generation.
  Parsed haswell("Skt,PCIRdCur,RFO,CRd,DRd,ItoM,PRd,WiL\n0,0,0,0,0,0,0,0\n");
  EXPECT_DOUBLE_EQ(haswell.format.counted_s(100, false), 0.098);
  // 72 ms of a second, rounded up.
  EXPECT_DOUBLE_EQ(haswell.format.counted_s(1000, true), 1.008);
  for (const PcmPcieGeneration& generation : pcm_pcie_generations()) EXPECT_EQ(84 % generation.groups, 0u);
}

// Two stacks. Counts of a whole stack are only in its first row.
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

TEST(PcmIio, SumsAllRootPortsByDefault) {
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

TEST(PcmIio, SumsAllRootPortsIfTheColumnIsMissing) {
  PcmIioFormat format("16:02.0");
  EXPECT_EQ(sums_of(format, kSkylake).at("IB write"), 6510u);
  EXPECT_THAT(format.blind(), HasSubstr("all root ports are summed"));
}

TEST(PcmIio, StartsAnIntervalAtEachHeader) {
  PcmIioFormat format;
  ToolLog log(format);
  for (int i = 0; i < 3; ++i) log.feed(kSkylake, Picos(1s) * i);
  EXPECT_EQ(log.whole_intervals().size(), 3u);
}

TEST(PcmIio, IgnoresDamagedBlocks) {
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

TEST(PcmIio, FindsColumnsByName) {
  // Release 202509 begins with the date and the time; columns may have any order.
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

TEST(PcmIio, RejectsMissingColumns) {
  PcmIioFormat format;
  EXPECT_THROW(sums_of(format, "Socket,Name,Part,Clockticks,IB write,IB read,OB read\n"), Error);
  EXPECT_THROW(sums_of(format, "Socket,Name,Part\n"), Error);
}

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

TEST(NeoHost, ReadsBothHalvesOfTheTable) {
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

TEST(NeoHost, IgnoresATruncatedTable) {
  NeoHostFormat format;
  ToolLog log(format);
  const std::string text = kTable;
  log.feed(text, 1s);
  log.feed(text.substr(0, text.find("|| Receive WQE")), 2s);
  EXPECT_EQ(log.blocks(), 2u);
  EXPECT_EQ(log.whole_intervals().size(), 1u);
}

}  // namespace
}  // namespace verbscope
