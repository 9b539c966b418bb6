// Comparison of hand-made records; the expected differences were calculated by hand.
#include "analysis/compare.hpp"

#include "analysis/loads.hpp"
#include "analysis/points.hpp"
#include "analysis/results_files.hpp"
#include "common/paths.hpp"
#include "pcie_model/render.hpp"
#include "tests/harness/fakes.hpp"

namespace verbscope {
namespace {

// 1000 operations: 2 lines read, 0.25 written, 1 MMIO and 300 bytes each; the model says 2, 0.2, 1 and 240.
Record measured_record(int post_list, double rate) {
  Record record = fake_record("sim:cib");
  record.config = Json{{"connection", "UD"}, {"size", 60}, {"post_list", post_list}, {"duration_s", 0.001}};
  record.config["point"] =
      Json{{"benchmark", "send_rate"},
           {"params", Json{{"connection", "UD"}, {"size", 60}, {"post_list", post_list}, {"duration", "1ms"}}},
           {"repetition", 0},
           {"seed", 1},
           {"fabric", "sim:cib"}};
  record.result = Json{{"rate_mops", rate}, {"window_ops", 1000}};
  CounterReport report;
  report.source = "sim";
  report.node = "server";
  report.events.dma_read_lines = 2000;
  report.events.dma_write_full_lines = 200;
  report.events.dma_write_partial_lines = 50;
  report.events.mmio_wc_lines = 900;
  report.events.mmio_doorbells = 100;
  report.events.bytes_to_nic = 180'000;
  report.events.bytes_to_host = 120'000;
  CounterReport other = report;
  other.node = "client0";
  other.events.dma_read_lines = 77;
  record.counters = {other, report};
  Prediction prediction;
  prediction.wire = read_cluster_wire(read_json_file(find_config("clusters", "cib")), "cib");
  prediction.role = "requester";
  prediction.pcie.dma_read_lines = 2;
  prediction.pcie.dma_write_full_lines = 0.1;
  prediction.pcie.dma_write_partial_lines = 0.1;
  prediction.pcie.mmio_wc_lines = 1;
  prediction.pcie.bytes_to_nic = 200;
  prediction.pcie.bytes_to_host = 40;
  prediction.binding = "mmio";
  prediction.bound_mops = 87.5;
  record.prediction = to_json(prediction);
  return record;
}

Record failed_record(int post_list) {
  Record record = measured_record(post_list, 0);
  record.status = RecordStatus::failed;
  record.reason = "no end after 3 s";
  return record;
}

std::vector<PublishedPoint> table() {
  PublishedPoint row;
  row.id = "row";
  row.cluster = "cib";
  row.run.benchmark = "send_rate";
  row.run.result_key = "rate_mops";
  row.value = 80;
  row.calibration = true;
  row.run.keys = {MatchKey{.key = "post_list", .run = 1}};
  return {row};
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

TEST(Compare, DividesServerCountersByOperationsOfTheInterval) {
  const std::vector<Record> records{measured_record(1, 82)};
  const auto published = table();
  const auto rows = compare_records(last_of_each_point(records), published);
  ASSERT_EQ(rows.size(), 1u);
  const CompareRow& row = rows[0];
  EXPECT_DOUBLE_EQ(*row.events[kReads].measured, 2);
  EXPECT_DOUBLE_EQ(*row.events[kReads].difference_percent(), 0);
  EXPECT_DOUBLE_EQ(*row.events[kWrites].measured, 0.25);
  EXPECT_NEAR(*row.events[kWrites].difference_percent(), 25, 1e-9);  // 0.25 against 0.2
  EXPECT_DOUBLE_EQ(*row.events[kMmios].measured, 1);
  EXPECT_DOUBLE_EQ(*row.events[kBytes].measured, 300);
  EXPECT_NEAR(*row.events[kBytes].difference_percent(), 25, 1e-9);  // 300 against 240
  EXPECT_DOUBLE_EQ(*row.rate_mops, 82);
  EXPECT_DOUBLE_EQ(*row.bound_mops, 87.5);
  EXPECT_EQ(row.binding, "mmio");
  EXPECT_EQ(row.published->id, "row");
  EXPECT_NEAR(*row.deviation_percent, 2.5, 1e-9);  // 82 against 80
  EXPECT_TRUE(row.simulated);
}

TEST(Compare, TakesEachGroupFromTheFirstSourceThatCountsIt) {
  Record record = measured_record(1, 82);
  record.result["window_s"] = 0.5;
  CounterReport all = record.counters[1];
  all.window_s = 0.25;  // half of the operations
  CounterReport lines = all;
  lines.events.dma_read_lines = 1000;
  lines.events.mmio_wc_lines = 0;
  lines.unseen = {"mmio_wc_lines", "bytes_to_nic", "bytes_to_host"};
  CounterReport nothing = all;
  nothing.unseen = {"dma_read_lines", "dma_write_full_lines", "dma_write_partial_lines",
                    "mmio_wc_lines",  "mmio_doorbells",       "bytes_to_nic",
                    "bytes_to_host"};
  record.counters = {nothing, lines, all};
  const std::vector<Record> records{record};
  const auto published = table();
  const auto rows = compare_records(last_of_each_point(records), published);
  EXPECT_DOUBLE_EQ(*rows.at(0).events[kReads].measured, 2);    // 1000 by 500
  EXPECT_DOUBLE_EQ(*rows.at(0).events[kMmios].measured, 0.2);  // 100 by 500: doorbells are seen there
  EXPECT_DOUBLE_EQ(*rows.at(0).events[kBytes].measured, 600);  // only the last sees bytes
}

// 1000 READs of 256 bytes that this machine's memory answers, at 10 Mops. The model has completions of one RCB, 64
// bytes, and MPS is 256: a READ needs 4 lines, 4 completions, and 1 if they are as large as MPS.
Record answered_reads(std::uint64_t completions_per_read, double rate = 10) {
  Record record = measured_record(1, rate);
  ClusterWire wire = read_cluster_wire(read_json_file(find_config("clusters", "cib")), "cib");
  wire.pcie.rcb = wire.pcie.completion = Bytes(64);
  wire.pcie.mps = Bytes(256);
  const VerbShape shape{.verb = Verb::read, .transport = Transport::rc, .payload = Bytes(256)};
  record.prediction = to_json(predict_responder(wire, shape));
  CounterReport& server = record.counters[1];
  server.events = {};
  server.events.dma_read_lines = 4000;
  server.events.tlps_to_nic = 1000 * completions_per_read;
  server.events.payload_bytes_to_nic = 256'000;
  return record;
}

std::vector<Residual> residuals_of(const Record& record) {
  return compare_records({&record}, {}).at(0).residuals;
}

TEST(Compare, FewerCompletionsThanModelledAreLargerOnes) {
  const Record record = answered_reads(1);
  const auto found = residuals_of(record);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].event, "read completions");
  EXPECT_EQ(found[0].per_op, -3);
  EXPECT_EQ(found[0].per_second, -30e6);
  EXPECT_TRUE(found[0].decided);
  EXPECT_EQ(found[0].meaning,
            "1.00 are counted, the model has 4.00 of up to 64 bytes (RCB), 2.00 of up to 128 bytes, 1.00 of up to 256 "
            "bytes (MPS); the root complex completes with up to 256 bytes");
  EXPECT_THAT(compare_table(compare_records({&record}, {})),
              testing::HasSubstr("sim:cib: -3 read completions per operation (-30 M/s): 1.00 are counted"));
  EXPECT_THAT(residuals_of(answered_reads(2)).at(0).meaning, testing::HasSubstr("completes with up to 128 bytes"));
  EXPECT_TRUE(residuals_of(answered_reads(4)).empty());
}

TEST(Compare, FewerCompletionsOfFewerLinesAreNotLarger) {
  Record record = answered_reads(1);
  record.counters[1].events.dma_read_lines = 1000;
  const auto found = residuals_of(record);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].event, "reads");
}

// 16 lanes of 984.6 MB/s carry 15753.6 MB/s. With a header of 22 bytes for each 64 of payload, 11723.6 of it are
// payload. 50 M READs of 256 bytes are 12800 MB/s, which leave 2953.6 MB/s, or 134.25 M headers: one for each 95.3
// bytes.
TEST(Compare, PayloadThatLeavesNoRoomForHeadersNeedsLargerCompletions) {
  Record record = answered_reads(0, 50);
  record.counters[1].unseen = {"tlps_to_nic", "tlps_to_host", "bytes_to_nic", "bytes_to_host"};
  const auto found = residuals_of(record);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_NEAR(found[0].per_op, 134.25 / 50 - 4, 1e-3);
  EXPECT_EQ(found[0].meaning,
            "12.80 GB/s of payload are counted; with completions of up to 64 bytes the link carries 11.72: the root "
            "complex completes with at least 95 bytes on average");
  record.result["rate_mops"] = 46;  // 11776 MB/s
  EXPECT_TRUE(residuals_of(record).empty());
}

TEST(Compare, DifferenceIsZeroForTwoZerosAndAbsentForAModelledZero) {
  EXPECT_EQ(*(EventPair{0.0, 0.0}.difference_percent()), 0);
  EXPECT_FALSE((EventPair{0.1, 0.0}.difference_percent()));
  EXPECT_FALSE((EventPair{{}, 1.0}).difference_percent());
}

TEST(Compare, LastRecordOfAPointCountsUnlessAllAreRequested) {
  const std::vector<Record> records{failed_record(1), measured_record(16, 100), measured_record(1, 80)};
  const auto published = table();
  const auto rows = compare_records(last_of_each_point(records), published);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_DOUBLE_EQ(*rows[0].rate_mops, 100);
  EXPECT_DOUBLE_EQ(*rows[1].rate_mops, 80);
  EXPECT_EQ(compare_records(chosen_records(records, true), published).size(), 3u);
}

TEST(Compare, TableHasOneLinePerPoint) {
  const std::vector<Record> records{measured_record(1, 82), measured_record(16, 101.6), failed_record(32)};
  const auto published = table();
  const auto lines = lines_of(compare_table(compare_records(last_of_each_point(records), published)));
  EXPECT_EQ(lines[0], "send_rate");
  EXPECT_EQ(lines[1],
            "post | sim.  | model bound | reads/op        | writes/op         | MMIOs/op        | PCIe bytes/op     "
            "| published");
  EXPECT_EQ(lines[2],
            "list |  Mops |  Mops by    | meas. model   % | meas. model     % | meas. model   % | meas. model     % "
            "| Mops    %");
  EXPECT_THAT(lines[4], testing::StartsWith("sim:cib (SIMULATED) connection=UD size=60 duration=0.001 s"));
  EXPECT_EQ(lines[5],
            "   1 | 82.00 | 87.50 mmio  |  2.00  2.00 0.0 | 0.250 0.200 +25.0 |  1.00  1.00 0.0 | 300.0 240.0 +25.0 "
            "|   80 +2.5 calibrated");
  EXPECT_EQ(lines[6],
            "  16 | 101.6 | 87.50 mmio  |  2.00  2.00 0.0 | 0.250 0.200 +25.0 |  1.00  1.00 0.0 | 300.0 240.0 +25.0 "
            "|    -");
  EXPECT_EQ(lines[7], "  32 | FAILED: no end after 3 s");
  for (const std::string& line : lines) EXPECT_LE(line.size(), 160u) << line;
}

// Without model and published rows, the table has no infinite or predicted cell.
TEST(Compare, CountWithoutModelHasNoPercentage) {
  Record record = measured_record(1, 82);
  Prediction prediction = *prediction_of(record);
  prediction.pcie.dma_read_lines = 0;
  record.prediction = to_json(prediction);
  const std::vector<Record> records{record};
  const std::string table = compare_table(compare_records(last_of_each_point(records), {}));
  EXPECT_EQ(table.find("inf"), std::string::npos);
  EXPECT_THAT(lines_of(table).at(5), testing::HasSubstr("|  2.00  0.00 - |"));
  EXPECT_EQ(table.find("published"), std::string::npos);
}

TEST(Compare, RecordWithoutCountersOrModelHasDashes) {
  Record record = fake_record("null");
  const std::vector<Record> records{record};
  const auto rows = compare_records(last_of_each_point(records), {});
  EXPECT_FALSE(rows[0].simulated);
  EXPECT_THAT(compare_table(rows), testing::HasSubstr("10.00 |    - -"));
}

// Rates of 78, 80 and 82: a deviation of 2, t(0.975; 2) = 4.3027, so 4.3027 * 2 / sqrt(3) = 4.968 each way.
TEST(Compare, RepetitionsFormOneRowWithMeanAndInterval) {
  std::vector<Record> records;
  for (int i = 0; i < 3; ++i) {
    records.push_back(measured_record(1, 78 + 2 * i));
    records.back().config["point"]["repetition"] = i;
  }
  const auto rows = compare_records(last_of_each_point(records), {});
  const auto lines = lines_of(compare_table(rows));
  EXPECT_THAT(lines[2], testing::StartsWith(" |  Mops   +- runs |")) << lines[2];
  EXPECT_THAT(lines[5], testing::StartsWith(" | 80.00 4.97    3 |")) << lines[5];
  EXPECT_THAT(lines[6], testing::StartsWith("where counted and modelled differ")) << "one row";
  const Json json = compare_json(rows);
  ASSERT_EQ(json.size(), 1u);
  EXPECT_EQ(json[0].at("runs"), 3);
  EXPECT_NEAR(json[0].at("rate_low_mops"), 75.032, 1e-3);
  EXPECT_NEAR(json[0].at("rate_high_mops"), 84.968, 1e-3);
  EXPECT_EQ(compare_json(rows, {.every_record = true, .columns = {}}).size(), 3u);
  EXPECT_THAT(lines_of(compare_table(rows, {.every_record = true, .columns = {}})).at(7),
              testing::StartsWith("  3 | 82.00"));
}

TEST(Compare, FailedRepetitionIsListedWithTheOthers) {
  Record failed = failed_record(1);
  failed.config["point"]["repetition"] = 1;
  const std::vector<Record> records{measured_record(1, 80), failed};
  const auto lines = lines_of(compare_table(compare_records(last_of_each_point(records), {})));
  EXPECT_THAT(lines[5], testing::HasSubstr("80.00  -    1"));
  EXPECT_THAT(lines[6], testing::HasSubstr("FAILED 1 of 2 runs: no end after 3 s"));
}

TEST(Compare, ColumnGroupOfZerosIsOmitted) {
  Record record = measured_record(1, 82);
  record.counters[1].events.mmio_wc_lines = record.counters[1].events.mmio_doorbells = 0;
  Prediction prediction = *prediction_of(record);
  prediction.pcie.mmio_wc_lines = 0;
  record.prediction = to_json(prediction);
  const std::vector<Record> records{record};
  const std::string table = compare_table(compare_records(last_of_each_point(records), {}));
  EXPECT_EQ(table.find("MMIOs/op"), std::string::npos);
  EXPECT_NE(table.find("writes/op"), std::string::npos);
}

TEST(Compare, LatencyShowsMedianAndTail) {
  Record record = measured_record(1, 0.343);
  record.result["lat_p50_ns"] = 1446.0;
  record.result["lat_p99_ns"] = 1593.0;
  record.result["lat_max_ns"] = 20000.0;
  const std::vector<Record> records{record};
  const auto rows = compare_records(last_of_each_point(records), {});
  const auto lines = lines_of(compare_table(rows, {.columns = parse_columns({"max"}, rows)}));
  EXPECT_THAT(lines[1], testing::HasSubstr("| latency us |"));
  EXPECT_THAT(lines[2], testing::HasSubstr("|  p50   p99 |"));
  EXPECT_THAT(lines[5], testing::AllOf(testing::HasSubstr("0.343 | 1.45  1.59 |"), testing::EndsWith("20.00")));
}

TEST(Compare, RequestedColumnsAreAdded) {
  Record record = measured_record(1, 82);
  record.result["bandwidth_gbit_per_s"] = 39.36;
  const std::vector<Record> records{record};
  const auto rows = compare_records(last_of_each_point(records), {});
  const auto columns = parse_columns({"gbps", "limit", "id"}, rows);
  EXPECT_EQ(columns, (std::vector<std::string>{"bandwidth_gbit_per_s", "limit", "id"}));
  const std::string table = compare_table(rows, {.columns = columns});
  EXPECT_THAT(table, testing::HasSubstr("Gb/s"));
  EXPECT_THAT(table, testing::HasSubstr("39.36"));
  EXPECT_THAT(table, testing::HasSubstr(point_id(record)));
  EXPECT_THROW(parse_columns({"gpbs"}, rows), UsageError);
}

TEST(Compare, PointsOfDifferentFilesStaySeparate) {
  std::vector<Record> records{measured_record(1, 80), measured_record(4, 90), measured_record(1, 70)};
  records[0].file = records[1].file = "base";
  records[2].file = "new";
  const auto rows = compare_records(last_of_each_point(records), {});
  const auto lines = lines_of(compare_table(rows));
  EXPECT_THAT(lines[5], testing::StartsWith("   1 base | 80.00")) << lines[5];
  EXPECT_THAT(lines[6], testing::StartsWith("   1 new  | 70.00")) << lines[6];
  EXPECT_THAT(lines[7], testing::StartsWith("   4 base | 90.00")) << lines[7];
  const Json json = compare_json(rows);
  EXPECT_EQ(json.at(1).at("file"), "new");
  EXPECT_EQ(json.at(0).at("id"), json.at(1).at("id")) << "a point has one id wherever it is";
  EXPECT_THAT(compare_csv(rows), testing::HasSubstr(",new,send_rate,"));
}

TEST(Compare, CsvHasOneColumnPerOption) {
  const std::vector<Record> records{measured_record(1, 80), measured_record(16, 90)};
  const auto lines = lines_of(compare_csv(compare_records(last_of_each_point(records), {})));
  EXPECT_THAT(lines[0], testing::HasSubstr(",reason,connection,size,post_list,duration,runs,rate_mops,"));
  EXPECT_THAT(lines[2], testing::HasSubstr(",ok,,UD,60,16,0.001,1,90,"));
}

TEST(Compare, ManualRunIsNamedByItsChangedOptions) {
  Record record = fake_record("sim:cib");
  record.config = Json{{"size", 64}, {"post_list", 1}, {"noPeak", false}, {"duration_s", 0.002}, {"timeout_s", 5.0}};
  record.environment["options_set"] = Json{"size", "duration", "timeout", "fabric"};
  EXPECT_EQ(point_title(record), "send_rate size=64 duration=0.002 s");
  record.environment["options_set"] = Json::array();
  EXPECT_EQ(point_title(record), "send_rate");
  record.environment.erase("options_set");  // a record of an earlier version
  EXPECT_THAT(point_title(record), testing::HasSubstr("post_list=1 noPeak=no"));
  record.config["point"] = Json{{"benchmark", "send_rate"}, {"params", Json{{"post_list", 1}}}};
  record.environment["options_set"] = Json{"size"};
  EXPECT_EQ(point_title(record), "send_rate post_list=1") << "a sweep names its own options";
}

TEST(Compare, PointsFollowTheOrderOfTheSweep) {
  const auto at = [](const char* sweep, int place, int post_list, int repetition) {
    Record record = measured_record(post_list, 80);
    record.config["point"]["repetition"] = repetition;
    record.environment["harness"] = Json{{"sweep", sweep}, {"place", place}};
    return record;
  };
  Record elsewhere = at("a", 0, 32, 0);  // another fabric is another run of the sweep
  elsewhere.environment["fabric"] = elsewhere.config["point"]["fabric"] = "sim:cx3";
  const std::vector<Record> records{at("a", 2, 16, 0),       at("a", 0, 1, 0),  at("a", 1, 4, 0),
                                    measured_record(99, 80), at("b", 0, 64, 0), at("a", 1, 4, 1),
                                    at("a", 2, 16, 1),       at("a", 0, 1, 1),  elsewhere};
  std::vector<std::pair<int, int>> order;
  for (const Record* record : last_of_each_point(records)) {
    order.emplace_back(record->config.at("post_list"), repetition_of(*record));
  }
  EXPECT_EQ(order, (std::vector<std::pair<int, int>>{
                       {1, 0}, {1, 1}, {4, 0}, {4, 1}, {16, 0}, {16, 1}, {99, 0}, {64, 0}, {32, 0}}));
}

TEST(Compare, JsonHasTheFiguresOfTheTable) {
  const std::vector<Record> records{measured_record(1, 82), failed_record(2)};
  const auto published = table();
  const Json json = compare_json(compare_records(last_of_each_point(records), published));
  ASSERT_EQ(json.size(), 2u);
  EXPECT_EQ(json[0].at("events_per_op").at("dma_write_lines").at("measured"), 0.25);
  EXPECT_EQ(json[0].at("published").at("use"), "calibration");
  EXPECT_EQ(json[0].at("simulated"), true);
  EXPECT_EQ(json[1].at("status"), "failed");
  EXPECT_EQ(json[1].at("reason"), "no end after 3 s");
}

}  // namespace
}  // namespace verbscope
