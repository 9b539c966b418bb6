// Broken, foreign or hostile records cause a clear error or no harm.
#include "analysis/diff.hpp"
#include "analysis/explain.hpp"
#include "analysis/perftest.hpp"
#include "analysis/points.hpp"
#include "analysis/report.hpp"
#include "analysis/results_files.hpp"
#include "tests/analysis/records.hpp"

namespace verbscope {
namespace {

std::string line_of(const Record& record) {
  return dump_json(to_json(record)) + "\n";
}

std::vector<Record> load_text(const std::string& text) {
  const TempFolder folder;
  write_text(folder.file("r.jsonl"), text);
  return load_results({folder.file("r.jsonl")}, true);
}

TEST(Robustness, OtherSchemaVersionIsAnError) {
  std::string line = line_of(sweep_record({{"size", 8}}, 80));
  line.replace(line.find("record/1"), 8, "record/9");
  EXPECT_THAT(error_of([&] { load_text(line); }), testing::HasSubstr("verbscope.record/9"));
}

TEST(Robustness, InvalidLinesAreSkippedWithTenWarnings) {
  std::string text = line_of(sweep_record({{"size", 8}}, 80));
  for (int i = 0; i < 1000; ++i)
    text += R"({"rate_mops": NaN})"
            "\n";
  testing::internal::CaptureStderr();
  EXPECT_EQ(load_text(text).size(), 1u);
  const std::string told = testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::ranges::count(told, '\n'), 11);
  EXPECT_THAT(told, testing::HasSubstr("in total 1000 lines are not records"));
}

TEST(Robustness, FileWithoutRecordsIsAnError) {
  testing::internal::CaptureStderr();
  EXPECT_THAT(error_of([] { load_text("{}\n"); }), testing::HasSubstr("has no record"));
  testing::internal::GetCapturedStderr();
}

// A repeated point replaces its earlier record while the file is read, so memory does not grow with the lines.
TEST(Robustness, RunsOfOnePointCountOnceForTheMemoryLimit) {
  const std::string small = line_of(sweep_record({{"size", 8}}, 80));
  const std::string large = line_of(sweep_record({{"size", 16}}, 70));
  const TempFolder folder;
  std::string text = large;
  for (int i = 0; i < 1000; ++i) text += small;
  write_text(folder.file("r.jsonl"), text);
  const std::vector<Record> kept = load_results({folder.file("r.jsonl")}, false, small.size() + large.size());
  ASSERT_EQ(kept.size(), 2u);
  EXPECT_EQ(kept[0].config.at("size"), 16);
  EXPECT_EQ(kept[1].config.at("size"), 8);
}

TEST(Robustness, RecordsAboveTheMemoryLimitAreAnErrorWithTheFile) {
  const std::string line = line_of(sweep_record({{"size", 8}}, 80));
  const TempFolder folder;
  write_text(folder.file("a.jsonl"), line);
  write_text(folder.file("b.jsonl"), line);
  EXPECT_THAT(error_of([&] {
                load_results({folder.file("a.jsonl"), folder.file("b.jsonl")}, true, line.size());
              }),
              testing::AllOf(testing::HasSubstr("b.jsonl"), testing::HasSubstr("name fewer files")));
}

// Non-finite numbers are null in a record; values computed from them are absent.
TEST(Robustness, NullRateIsNoRate) {
  Record record = sweep_record({{"size", 8}}, 80);
  record.result["rate_mops"] = nullptr;
  EXPECT_EQ(explain_json(explain(record)).at("limit"), Json());
  EXPECT_EQ(diff_records({record}, {record}, {}).rows[0].verdict, ChangeVerdict::only_new);
  EXPECT_EQ(perftest_lines({&record}, PerftestForm::json).find("MsgRate"), std::string::npos);
}

TEST(Robustness, OptionsOfUnexpectedTypeAreAccepted) {
  Record record = sweep_record({{"verb", 7}, {"size", "many"}}, 80);
  record.config["point"]["params"] = "none";
  record.config["point"]["repetition"] = 1e300;
  record.result["latency"] = Json{1, "x", Json{{"lat_histogram_ns", Json{1, 2}}}};
  record.environment["time_utc"] = 5;
  EXPECT_FALSE(point_id(record).empty());
  EXPECT_FALSE(explain_text(explain(record)).empty());
  EXPECT_FALSE(perftest_lines({&record}, PerftestForm::json).empty());
  EXPECT_FALSE(flat_csv({&record}).empty());
  EXPECT_FALSE(report_page({&record}).empty());
}

TEST(Robustness, InvalidPredictionErrorNamesThePoint) {
  Record record = sweep_record({{"size", 8}}, 80);
  record.prediction = Json{{"cluster", "cib"}};
  EXPECT_THAT(error_of([&] { explain(record); }), testing::HasSubstr("point " + point_id(record)));
  Prediction prediction = predict_requester(cib(), {.payload = Bytes(8)});
  record.prediction = to_json(prediction);
  record.prediction["wire"]["pcie_rcb_bytes"] = 0;  // the model divides by it
  EXPECT_THAT(error_of([&] { explain(record); }), testing::HasSubstr("pcie_rcb_bytes"));
}

TEST(Robustness, RecordTextsAreNotMarkupInTheReport) {
  const std::string hostile = "</script><img src=x onerror=alert(1)><!--";
  Record record = sweep_record({{"note", hostile}}, 80);
  record.environment["hostname"] = hostile;
  record.benchmark = hostile;
  const std::string page = report_page({&record});
  EXPECT_THAT(page, testing::Not(testing::HasSubstr("<img src=x onerror")));
  EXPECT_THAT(page, testing::HasSubstr(R"(\u003cimg src=x)"));
}

TEST(Robustness, TooLargeRecordsAreOmittedWithANote) {
  const Record record = sweep_record({{"size", 8}}, 80);
  const std::string page = report_page({&record}, 10);
  EXPECT_THAT(page, testing::HasSubstr(R"("records_left_out":")"));
  EXPECT_THAT(page, testing::Not(testing::HasSubstr("verbscope.record/1")));
}

}  // namespace
}  // namespace verbscope
