// Console lines of a rate: enough digits, the bandwidth, and the side that has it.
#include "microbench/run/console.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/text.hpp"
#include "tests/common/sample_records.hpp"

namespace verbscope {
namespace {

Record record_at(const Json& rate) {
  Record record = sample_record();
  record.config = Json{{"size", 65536}, {"connection", "RC"}};
  record.result = Json{{"rate_mops", rate}, {"threads", Json{{{"rate_mops", rate}}}}, {"window_s", 0.5}};
  record.prediction = nullptr;
  return record;
}

TEST(Digits, SmallNumbersHaveThreeSignificantDigits) {
  EXPECT_EQ(with_digits(101.6127, 3), "101.613");
  EXPECT_EQ(with_digits(0.04321, 3), "0.0432");
  EXPECT_EQ(with_digits(0.000123456, 3), "0.000123");
  EXPECT_EQ(with_digits(0.5, 2), "0.500");
  EXPECT_EQ(with_digits(12, 2), "12.00");
  EXPECT_EQ(with_digits(0, 2), "0.00");
}

// 0.0002 million operations of 64 KiB per second are 13.1 MB/s and 0.105 Gb/s.
TEST(Console, PrintsASmallRateWithItsBandwidth) {
  Record record = record_at(0.0002);
  record.result["bandwidth_gbit_per_s"] = 0.1048576;
  record.result["bandwidth_mb_per_s"] = 13.1072;
  EXPECT_THAT(summary({}, record),
              testing::HasSubstr("  0.000200 simulated Mops, 0.105 Gb/s, 13.1 MB/s over 0.5 simulated s\n"));
}

TEST(Console, PrintsWhyASideHasNoRate) {
  Record record = record_at(nullptr);
  record.result["not_counted"] = "the server counts, its record has the rate";
  const std::string text = summary({}, record);
  EXPECT_THAT(text, testing::HasSubstr("  not counted: the server counts, its record has the rate; 0.5 "));
  EXPECT_EQ(text.find("Mops"), std::string::npos);
}

TEST(Console, PrintsThreadsQpsAndWindow) {
  Record record = record_at(1.0);
  record.config.update({{"threads", 2}, {"qp", 4}, {"clients", 1}, {"client_threads", 14}, {"window", 16}});
  EXPECT_THAT(summary({}, record),
              testing::HasSubstr(", window 16; server: 2 threads, 4 QPs each; 1 client, 14 threads each\n"));
}

TEST(Console, PrintsRnrNaksAndAssumedParameters) {
  Record record = record_at(1.0);
  record.config["rx_depth"] = 41;
  record.counters.resize(2);
  record.counters[0].extra["rnr_naks_sent"] = 3;
  record.counters[1].extra["rnr_naks_sent"] = 4;
  record.environment["assumed"] =
      Json{{"QP contexts", {{"assumed", {"a", "b"}}, {"of", 2}}}, {"WQE cache", {{"assumed", {"c"}}, {"of", 4}}}};
  const std::string text = summary({}, record);
  EXPECT_THAT(text, testing::AllOf(testing::HasSubstr("  7 RNR NAKs"), testing::HasSubstr("--rx_depth 41")));
  EXPECT_THAT(text, testing::HasSubstr("neither documented nor measured: QP contexts (all 2), WQE cache (1 of 4)"));
}

}  // namespace
}  // namespace verbscope
