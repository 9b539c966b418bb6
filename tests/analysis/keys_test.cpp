// Keys of options and results as users name them, and the records that `--where` keeps.
#include "analysis/keys.hpp"

#include <gmock/gmock.h>

#include "tests/analysis/records.hpp"

namespace verbscope {
namespace {

Record latency_record() {
  Record record = sweep_record({{"size", 16}}, 0.5);
  record.benchmark = "verb_latency";
  record.result["latency"] = Json::array({Json{{"size", 16}, {"lat_p50_ns", 1400.0}, {"lat_p99_ns", 1500.0}}});
  return record;
}

std::string refusal(const std::string& name, const std::vector<Record>& records) {
  try {
    return "found " + find_result_key("--y", name, pointers(records));
  } catch (const UsageError& error) {
    return error.what();
  }
}

TEST(Keys, ShortNamesResolveToKeys) {
  Record record = sweep_record({{"size", 16}, {"post_list", 4}}, 1);
  record.config["duration_s"] = 0.5;
  record.result["bandwidth_gbit_per_s"] = 2.5;
  record.result["get_lat_p99_ns"] = 700.0;
  const std::vector<Record> records{record};
  for (const auto& [name, key] : std::map<std::string, std::string>{{"gbps", "bandwidth_gbit_per_s"},
                                                                    {"mops", "rate_mops"},
                                                                    {"get_p99", "get_lat_p99_ns"},
                                                                    {"get-lat-p99-ns", "get_lat_p99_ns"},
                                                                    {"rate_mops", "rate_mops"}}) {
    EXPECT_EQ(find_result_key("--y", name, pointers(records)), key) << name;
  }
  EXPECT_EQ(find_option_key("--x", "payload", pointers(records)), "size");
  EXPECT_EQ(find_option_key("--x", "post-list", pointers(records)), "post_list");
  EXPECT_EQ(find_option_key("--x", "duration", pointers(records)), "duration_s");
}

TEST(Keys, UnknownNameListsKeysWithShortNames) {
  Record record = sweep_record({{"size", 16}}, 1);
  record.result["bandwidth_gbit_per_s"] = 2.5;
  const std::string words = refusal("gpbs", {record});
  EXPECT_THAT(words, testing::HasSubstr("--y gpbs"));
  EXPECT_THAT(words, testing::HasSubstr("did you mean gbps?"));
  EXPECT_THAT(words, testing::HasSubstr("bandwidth_gbit_per_s (gbps)"));
  EXPECT_THAT(words, testing::HasSubstr("window_ops"));
}

TEST(Keys, UnknownOptionListsDifferingOptions) {
  const std::vector<Record> records{sweep_record({{"size", 16}, {"threads", 8}}, 1),
                                    sweep_record({{"size", 32}, {"threads", 8}}, 1)};
  try {
    find_option_key("--x", "qps", pointers(records));
    FAIL() << "found";
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("size (payload)"));
    EXPECT_THAT(error.what(), testing::Not(testing::HasSubstr("threads")));
  }
}

TEST(Keys, LatencyOfOneSizeIsAResult) {
  const std::vector<Record> records{latency_record()};
  EXPECT_EQ(find_result_key("--y", "p99", pointers(records)), "lat_p99_ns");
  EXPECT_EQ(result_number(records[0], "lat_p99_ns"), 1500.0);
}

// sweep_record has 1000 operations in its window: 6400 lines are 6.4 lines each.
TEST(Keys, ServerEventIsAResultPerOperation) {
  Record record = sweep_record({{"size", 16}}, 1);
  CounterReport report;
  report.node = "server";
  report.source = "sim";
  report.window_s = 1;
  report.events.dma_read_lines = 6400;
  record.counters.push_back(report);
  EXPECT_DOUBLE_EQ(result_number(record, "dma_read_lines_per_op").value_or(0), 6.4);
  EXPECT_THAT(result_keys(record), testing::Contains("dma_read_lines_per_op"));
}

TEST(Keys, MainResultOfALatencyBenchmarkIsTheMedian) {
  const Record rate = sweep_record({{"size", 16}}, 1), latency = latency_record();
  Record visibility = rate;
  visibility.benchmark = "write_visibility";
  visibility.result["write_lat_p50_ns"] = 5128.0;
  EXPECT_EQ(main_result_key(rate), "rate_mops");
  EXPECT_EQ(main_result_key(latency), "lat_p50_ns");
  EXPECT_EQ(main_result_key(visibility), "write_lat_p50_ns");
  EXPECT_EQ(main_result_key(std::vector<const Record*>{&latency, &latency}), "lat_p50_ns");
  EXPECT_EQ(main_result_key(std::vector<const Record*>{&latency, &rate}), "rate_mops");
}

std::size_t left_by(const std::vector<Record>& records, const std::vector<std::string>& conditions) {
  std::vector<const Record*> kept = pointers(records);
  keep_where(kept, conditions);
  return kept.size();
}

TEST(Where, KeepsRecordsWithAnyOfTheValues) {
  std::vector<Record> records{labelled("a", {{"size", 16}, {"events", true}}, 1),
                              labelled("b", {{"size", 160}, {"events", false}}, 1, "sim:cx3"),
                              labelled("b", {{"size", 32}, {"events", false}}, 1)};
  EXPECT_EQ(left_by(records, {"size=16"}), 1u);
  EXPECT_EQ(left_by(records, {"size=16,32.0"}), 2u);
  EXPECT_EQ(left_by(records, {"label=b"}), 2u);
  EXPECT_EQ(left_by(records, {"label=b", "fabric=cx3"}), 1u);
  EXPECT_EQ(left_by(records, {"fabric=sim:cib"}), 2u);
  EXPECT_EQ(left_by(records, {"events=true"}), 1u);
  EXPECT_EQ(left_by(records, {"benchmark=send_rate"}), 3u);
}

TEST(Where, UnknownKeyOrValueListsTheKnownOnes) {
  const std::vector<Record> records{labelled("a", {{"size", 16}, {"post_list", 4}}, 1)};
  EXPECT_EQ(error_of([&] { left_by(records, {"sise=16"}); }),
            "--where sise=16: no record has the key \"sise\"; known keys: benchmark, fabric, label, post_list, size");
  EXPECT_EQ(error_of([&] { left_by(records, {"size=17"}); }),
            "--where size=17: no record has this value; known values: 16");
  EXPECT_THAT(error_of([&] { left_by(records, {"size"}); }), testing::StartsWith("--where: expected key=value"));
  EXPECT_EQ(left_by(records, {"post-list=4"}), 1u);
}

}  // namespace
}  // namespace verbscope
