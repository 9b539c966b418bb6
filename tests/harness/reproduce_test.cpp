// Published rows beside what became of them: the verdict, the table, and the figure of a row that the model gives.
#include "harness/paper/reproduce.hpp"

#include "harness/paper/row_runner.hpp"
#include "tests/harness/fakes.hpp"

namespace verbscope {
namespace {

using testing::HasSubstr;

PublishedPoint row(const std::string& id, double value, bool calibration) {
  PublishedPoint point;
  point.id = id;
  point.where = "Table 4";
  point.cluster = "cib";
  point.metric = "rate_mops";
  point.value = value;
  point.calibration = calibration;
  point.run.benchmark = "send_rate";
  point.run.result_key = "rate_mops";
  return point;
}

// The record of what a row runs, under the run's name.
std::map<std::string, Record> record_of(const PublishedPoint& point, const Record& record) {
  return {{runs_of(point).at(0).identity(), record}};
}

bool within(const PublishedPoint& point, double value) {
  return within_limits({.row = &point, .value = value, .failure = ""});
}

TEST(Reproduce, LimitIsThreePercentForCalibratedRowsTenForPredicted) {
  const PublishedPoint fitted = row("f", 100, true), free = row("p", 100, false);
  EXPECT_TRUE(within(fitted, 102.9));
  EXPECT_TRUE(within(fitted, 97.1));
  EXPECT_FALSE(within(fitted, 103.1));
  EXPECT_FALSE(within(fitted, 96.9));
  EXPECT_TRUE(within(free, 109.9));
  EXPECT_FALSE(within(free, 89.9));
}

TEST(Reproduce, RowCanHaveItsOwnLimit) {
  PublishedPoint point = row("p", 100, false);
  point.tolerance_percent = 25;
  EXPECT_TRUE(within(point, 124));
  EXPECT_FALSE(within(point, 126));
}

TEST(Reproduce, BoundHoldsAtAnyDistanceOnItsSide) {
  PublishedPoint point = row("p", 100, false);
  point.comparison = Comparison::at_least;
  EXPECT_TRUE(within(point, 1000));
  EXPECT_EQ(point.deviation_of(1000), 0);
  EXPECT_TRUE(within(point, 91));
  EXPECT_FALSE(within(point, 89));
  point.comparison = Comparison::at_most;
  EXPECT_TRUE(within(point, -5));
  EXPECT_FALSE(within(point, 111));
}

TEST(Reproduce, FailedRowIsOutsideAndSkippedRowIsWithinLimits) {
  const PublishedPoint point = row("f", 100, true);
  EXPECT_FALSE(within_limits({.row = &point, .value = {}, .failure = "no"}));
  EXPECT_TRUE(within_limits({.row = &point, .value = {}, .failure = "", .missing = "needs a system"}));
}

TEST(Reproduce, RowWithNeedsOrWithoutProfileIsNotRun) {
  PublishedPoint point = row("f", 100, true);
  EXPECT_EQ(not_run_reason(point), "");
  point.cluster = "susitna";
  EXPECT_EQ(not_run_reason(point), "no profile susitna");
  point.needs = "a system";
  EXPECT_EQ(not_run_reason(point), "needs a system");
}

TEST(Reproduce, TableHasEveryRowAndASummary) {
  const PublishedPoint good = row("good", 80, true), broken = row("broken", 5, true);
  PublishedPoint off = row("off", 100, false);
  off.known_miss = "no model of it";
  const PublishedPoint later = row("later", 97.2, false);
  const std::string text = reproduction_text(
      {{&good, 80.8, ""}, {&off, 88, ""}, {&broken, {}, "no QP"}, {&later, {}, "", "needs the sequencer"}});
  EXPECT_THAT(text, HasSubstr("sim:cib (SIMULATED)\n"));
  EXPECT_THAT(text, testing::ContainsRegex("good +\\| Table 4 \\| Mops +\\| +80 +80\\.80 +\\+1\\.0 \\| calibrated\n"));
  EXPECT_THAT(text, testing::ContainsRegex("off .* 100 +88\\.00 +-12\\.0 \\| predicted +OFF by more than 10 %\n"));
  EXPECT_THAT(text, testing::ContainsRegex("broken .*FAILED: no QP\n"));
  EXPECT_THAT(text, HasSubstr("known miss: off: no model of it\n"));
  EXPECT_THAT(text, HasSubstr("not run: later: needs the sequencer\n"));
  EXPECT_THAT(text, testing::EndsWith("NOT within limits: 2 calibrated (3 % allowed), 1 outside, worst +1.0 %: good; "
                                      "1 predicted (10 % allowed), 1 outside, worst -12.0 %: off; 1 of 4 rows not "
                                      "run\n"));
}

TEST(Reproduce, SummarySaysAllWithinLimits) {
  const PublishedPoint good = row("good", 80, true);
  EXPECT_THAT(reproduction_text({{&good, 80, ""}}), HasSubstr("\nall within limits: 1 calibrated"));
}

TEST(Reproduce, SummaryDoesNotSayAllIfARowIsMissing) {
  const PublishedPoint good = row("good", 80, true);
  const std::string text = reproduction_text({{&good, 80, ""}, {&good, {}, "", "no profile cx9"}});
  EXPECT_THAT(text, HasSubstr("\nall rows that ran are within limits: 1 calibrated"));
  EXPECT_THAT(text, HasSubstr("not run: good: no profile cx9\n"));
}

TEST(Reproduce, RowOfAnotherMachineIsShownButNotChecked) {
  PublishedPoint host = row("far", 2.6, false);
  host.cluster = "e5-2680";
  host.on_host = true;
  EXPECT_EQ(not_run_reason(host), "");
  EXPECT_EQ(runs_of(host).at(0).fabric(), "host");
  const PublishedPoint good = row("good", 80, true);
  EXPECT_EQ(runs_of(good).at(0).fabric(), "sim:cib");
  const std::string text = reproduction_text({{&host, 1.3, ""}, {&good, 80, ""}});
  EXPECT_THAT(text, HasSubstr("this machine (not checked); published: e5-2680\n"));
  EXPECT_THAT(text, testing::ContainsRegex("far +\\| Table 4 \\| Mops +\\| +2\\.6 +1\\.30"));
  EXPECT_THAT(text, HasSubstr("\nall within limits: 1 calibrated"));
  EXPECT_THAT(text, HasSubstr("0 predicted (10 % allowed); 1 of another machine, not checked; 0 of 2 rows not run"));
  EXPECT_THAT(reproduction_text({{&host, 1.3, ""}}), HasSubstr("\nnothing was checked: "));
}

TEST(RowValue, CanBeNestedInTheResult) {
  PublishedPoint point = row("r", 80, true);
  point.run.result_key = "in_turns.ratio";
  Record record = fake_record("sim:cib");
  record.result["in_turns"] = Json{{"ratio", 1.5}};
  EXPECT_EQ(row_value(point, record_of(point, record)), 1.5);
  record.result["in_turns"] = 1.5;
  EXPECT_EQ(error_of([&] { row_value(point, record_of(point, record)); }), "r: the record has no in_turns.ratio");
}

TEST(RowValue, IsTheFigureOfTheRecordOrAOneLineError) {
  const PublishedPoint point = row("r", 80, true);
  Record record = fake_record("sim:cib");
  EXPECT_EQ(row_value(point, record_of(point, record)), 10);
  record.result.erase("rate_mops");
  EXPECT_EQ(error_of([&] { row_value(point, record_of(point, record)); }), "r: the record has no rate_mops");
  record.status = RecordStatus::failed;
  record.reason = "exit status 3";
  EXPECT_EQ(error_of([&] { row_value(point, record_of(point, record)); }), "r: exit status 3");
}

TEST(RowValue, OfTwoRunsIsRatioOrDifferenceOrPercent) {
  PublishedPoint point = row("r", 80, true);
  PublishedRun second = point.run;
  second.benchmark = "recv_rate";
  point.second = second;
  ASSERT_EQ(runs_of(point).size(), 2u);
  std::map<std::string, Record> records;
  Record record = fake_record("sim:cib");
  for (const double rate : {30.0, 12.0}) {
    record.result["rate_mops"] = rate;
    records.emplace(runs_of(point)[records.size()].identity(), record);
  }
  EXPECT_EQ(row_value(point, records), 2.5);
  point.combination = Combination::difference;
  EXPECT_EQ(row_value(point, records), 18);
  point.combination = Combination::percent_above;
  EXPECT_EQ(row_value(point, records), 150);
  point.combination = Combination::percent_below;
  EXPECT_EQ(row_value(point, records), -150);
}

TEST(RowValue, OfACurveIsAPositionOnIt) {
  PublishedPoint point = row("r", 4, false);
  point.along = CurvePlace{.option = "threads", .values = {1, 2, 4}, .kind = CurvePlace::Kind::reaches};
  const std::vector<RowRun> runs = runs_of(point);
  ASSERT_EQ(runs.size(), 3u);
  EXPECT_EQ(runs[1].params.at("threads"), 2);
  std::map<std::string, Record> records;
  Record record = fake_record("sim:cib");
  for (const double rate : {4.0, 9.1, 10.0}) {
    record.result["rate_mops"] = rate;
    records.emplace(runs[records.size()].identity(), record);
  }
  EXPECT_EQ(row_value(point, records), 2);
  point.along->kind = CurvePlace::Kind::holds;
  EXPECT_EQ(error_of([&] { row_value(point, records); }), "r: the curve along threads has no such position: 4 9.1 10");
}

// Kalia et al., ATC 2016, Appendix A and section 5.2.1.
TEST(ModelValue, ReproducesTheModelledRowsOfTheTable) {
  int rows = 0;
  for (const PublishedPoint& point : load_published()) {
    if (!point.reproducible() || !point.modelled()) continue;
    EXPECT_NEAR(model_value(point), point.value, point.value * 0.001) << point.id;
    ++rows;
  }
  EXPECT_EQ(rows, 4);
}

// The row's own options reach the benchmark, and its record comes back.
TEST(RunRow, RunsTheBenchmarkWithTheOptionsOfTheRow) {
  const FakeBenchmark fake("echo \"$all\" > $dir/arguments\ncat \"$record\" >> \"$out\"", "sim:cib");
  PublishedPoint point = row("r", 10, true);
  point.run.keys = {{.key = "connection", .run = "UD"},
                    {.key = "threads", .run = 8, .range = true, .min = 6, .max = 20}};
  const std::optional<Record> record = run_row(runs_of(point).at(0), "sim:cib", fake.folder(), nullptr);
  ASSERT_TRUE(record);
  EXPECT_EQ(row_value(point, record_of(point, *record)), 10);
  EXPECT_THAT(read_text(fake.file("arguments")), HasSubstr("--fabric=sim:cib --seed=1 --connection=UD --threads=8 "));
}

}  // namespace
}  // namespace verbscope
