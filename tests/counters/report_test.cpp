// Reports subtract the background, and write events that are not counted as null.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "counters/source.hpp"

namespace verbscope {
namespace {

using testing::HasSubstr;

TEST(Report, SubtractsTheBackgroundAndKeepsBoth) {
  // 500 per second in the window of 2 s, and 50 per second in the background.
  const Counted counted{.window_s = 2, .raw = {{"a", 1000}}, .background_s = 0.5, .background_per_s = {{"a", 50}}};
  const CounterReport report = make_report("x", "", counted, {{"dma_read_lines", {"a"}}});
  EXPECT_EQ(report.events.dma_read_lines, 900u);
  EXPECT_EQ(report.extra.at("raw").at("a"), 1000);
  EXPECT_EQ(report.extra.at("background_per_s").at("a"), 50);
  EXPECT_EQ(report.extra.at("net").at("a"), 900);
}

TEST(Report, NetIsZeroIfTheBackgroundExceedsTheCount) {
  const Counted counted{.window_s = 2, .raw = {{"a", 10}}, .background_s = 1, .background_per_s = {{"a", 50}}};
  EXPECT_EQ(make_report("x", "", counted, {{"dma_read_lines", {"a"}}}).events.dma_read_lines, 0u);
}

TEST(Report, ReportsADecreasedCounterAsNull) {
  const Counted counted{.window_s = 2, .raw = {{"a", std::nan("")}}, .background_s = 1, .background_per_s = {}};
  const CounterReport report = make_report("x", "", counted, {{"dma_read_lines", {"a"}}});
  EXPECT_TRUE(report.extra.at("raw").at("a").is_null());
  EXPECT_TRUE(report.extra.at("net").at("a").is_null());
}

TEST(Report, EventsWithoutARuleAreUnseenAndNullInTheRecord) {
  Record record;
  record.benchmark = "send_rate";
  record.config = {{"size", 64}};
  record.result = {{"rate_mops", 1.0}};
  record.environment = {{"fabric", "verbs"}, {"simulated", false}};
  record.counters = {make_report("x", "", {.window_s = 1, .raw = {{"a", 7}}, .background_s = 0, .background_per_s = {}},
                                 {{"dma_read_lines", {"a"}}}),
                     missing_report("y", "the cat sat on it")};
  const Json json = to_json(record);
  EXPECT_EQ(json.at("counters")[0].at("events").at("dma_read_lines"), 7);
  EXPECT_TRUE(json.at("counters")[0].at("events").at("mmio_doorbells").is_null());
  EXPECT_TRUE(json.at("counters")[1].at("events").at("dma_read_lines").is_null());
  EXPECT_THAT(json.at("counters")[1].at("blind").get<std::string>(), HasSubstr("the cat sat on it"));
  const Record read = record_from_json(json, "record");
  EXPECT_TRUE(read.counters[0].sees("dma_read_lines"));
  EXPECT_FALSE(read.counters[0].sees("mmio_doorbells"));
  EXPECT_EQ(to_json(read), json);
}

}  // namespace
}  // namespace verbscope
