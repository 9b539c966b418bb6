// Measured rows as command lines, what of them can run, their errors, and where curves bend.
#include "harness/evidence/evidence.hpp"

#include "harness/evidence/calibration.hpp"
#include "harness/evidence/measured_curves.hpp"
#include "harness/evidence/validate.hpp"
#include "tests/harness/evidence_rows.hpp"

namespace verbscope {
namespace {

using test::outcomes_of;
using test::rows_of;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(MeasuredRows, RowBecomesARunByTheMatchingRules) {
  const auto rows = rows_of("cib,READ,8,4,12.5,0.1,run-a\ncib,WRITE,16,4,9,0.1,uc_write\ncib,CAS,1,1,2,0,run-a\n");
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].point.run.params(), Json::parse(R"({"size": 8, "connection": "RC"})"));
  EXPECT_EQ(rows[0].point.value, 12.5);
  EXPECT_EQ(rows[0].point.paper, "toy");
  EXPECT_EQ(rows[0].point.where, "run-a");
  EXPECT_EQ(rows[0].point.what, "verb=READ window=8 batch=4");
  EXPECT_EQ(rows[1].point.run.params(), Json::parse(R"({"size": 16, "connection": "UC", "post_list": 1})"));
  EXPECT_EQ(rows[2].not_run, "not modelled: no CAS");
}

TEST(MeasuredRows, UnknownFormOrInvalidLineIsAOneLineError) {
  const MeasuredForms forms(Json::parse(test::kForms), "forms");
  EXPECT_THAT(error_of([&] { forms.rows("a,b\n", "x.csv"); }),
              HasSubstr("x.csv:1: unknown columns; known sets: toy ("));
  EXPECT_EQ(error_of([] { rows_of("cib,READ,8\n"); }), "t.csv:2: expected 7 cells, got 3");
  EXPECT_EQ(error_of([] { rows_of("cib,READ,8,4,fast,0,s\n"); }),
            R"(t.csv:2: mops: expected a number above 0, got "fast")");
}

TEST(MeasuredRows, QuotedCellsMayContainCommas) {
  EXPECT_EQ(rows_of("cib,READ,8,4,12.5,0.1,\"run, \"\"a\"\"\"\n")[0].point.where, "run, \"a\"");
  EXPECT_EQ(error_of([] { rows_of("cib,READ,8,4,12.5,0.1,\"run\n"); }), "t.csv:2: a quote has no end");
}

TEST(MeasuredRows, FormsScaleValuesAndChangeTheProfile) {
  const EvidenceRow row = rows_of("cib,LATENCY,8,2048,1.5,0,a\n")[0];
  EXPECT_EQ(row.point.value, 1500);
  EXPECT_EQ(row.point.run.result_key, "lat_p50_ns");
  EXPECT_EQ(row.point.profile, Json::parse(R"({"wire.mtu_bytes": 2048})"));
}

TEST(MeasuredRows, FormsReplaceTheClusterAndDivideColumns) {
  const EvidenceRow row = rows_of("cib,READ,8,4,12.5,0.1,elsewhere\n")[0];
  EXPECT_EQ(row.point.cluster, "cx3");
  EXPECT_EQ(row.columns.at("cluster"), "cib");
  EXPECT_EQ(row.point.run.params().at("window"), 2);
  EXPECT_EQ(error_of([] { rows_of("cib,READ,9,4,12.5,0.1,elsewhere\n"); }),
            R"(t.csv:2: window: "9" has no whole quotient for $window/4)");
  EXPECT_THAT(error_of([] { rows_of("cib,READ,all,4,12.5,0.1,elsewhere\n"); }), HasSubstr("no whole quotient"));
}

// The files that ship, and the programs that there will be.
TEST(MeasuredRows, EveryInstalledRowIsARun) {
  std::map<std::string, int> sets;
  for (const EvidenceRow& row : all_evidence()) {
    if (row.columns.empty()) continue;
    ++sets[row.point.paper];
    EXPECT_EQ(runs_of(row.point).size(), 1u) << row.point.id;
    if (row.point.paper == "perftest") continue;
    const bool read = row.columns.at("verb") == "READ", swap = row.columns.at("verb") == "CAS";
    const Json options = row.point.run.params();
    EXPECT_TRUE(row.point.run.benchmark == (swap   ? "atomic_rate"
                                            : read ? "read_rate"
                                                   : "write_rate") ||
                options.value("verb", "") == (read ? "read" : "write"))
        << row.point.id;
    const bool modelled = row.columns.value("allocation", "") != "work-req-throt" &&
                          row.columns.value("threads_per_machine", 0) <= 14;  // one socket
    EXPECT_EQ(row.not_run.empty(), modelled) << row.point.id;
  }
  EXPECT_EQ(sets["rc-swarm"], 288);
  EXPECT_EQ(sets["connectx6"], 219);
  EXPECT_EQ(sets["perftest"], 68);
  EXPECT_EQ(sets["cx5-concurrency"], 24);
}

TEST(Evidence, RowWithoutProfileProgramOrOptionIsNotRun) {
  const FakeBenchmark fake("true");
  auto rows = rows_of("cib,READ,8,4,12.5,0.1,a\ncx99,READ,8,4,12.5,0.1,a\n");
  rows.push_back(rows[0]);
  rows[2].point.run.benchmark = "all_to_everyone";
  rows.push_back(rows[0]);
  rows[3].point.run.keys.push_back({.key = "colour", .run = 1});
  rows.push_back(rows[0]);
  rows[4].point.run.benchmark = "recv_rate";
  Programs programs(fake.folder());
  set_not_run_reasons(rows, programs);
  EXPECT_EQ(rows[0].not_run, "");
  EXPECT_EQ(rows[1].not_run, "no profile cx99");
  EXPECT_EQ(rows[2].not_run, "no benchmark all_to_everyone");
  EXPECT_EQ(rows[3].not_run, "send_rate has no option colour");
  EXPECT_EQ(rows[4].not_run, "no program recv_rate");
}

TEST(Evidence, DrawIsSeededWithoutDuplicates) {
  const auto first = draw_numbers(100, 40, 7);
  EXPECT_EQ(first, draw_numbers(100, 40, 7));
  EXPECT_NE(first, draw_numbers(100, 40, 8));
  EXPECT_EQ(first.size(), 40u);
  EXPECT_TRUE(std::ranges::is_sorted(first));
  EXPECT_EQ(std::ranges::adjacent_find(first), first.end());
  EXPECT_EQ(draw_numbers(3, 40, 1), (std::vector<std::size_t>{0, 1, 2}));
}

TEST(Evidence, EachDistinctRunHappensOnceAndAFailureAffectsOnlyItsRow) {
  const FakeBenchmark fake("echo x >> $dir/ran\ncase \"$all\" in *size=9*) exit 3;; esac\ncat \"$record\" >> \"$out\"");
  const auto rows = rows_of("cib,READ,8,4,5,0,a\ncib,READ,8,9,20,0,a\ncib,READ,9,4,5,0,a\n");
  const auto records = run_evidence(
      rows,
      {.folder = fake.folder(), .fabric = [](const std::string&) { return std::string("null"); }, .finished = {}});
  EXPECT_EQ(read_text(fake.file("ran")), "x\nx\n");
  const auto outcomes = evidence_outcomes(rows, records);
  EXPECT_EQ(outcomes[0].error_percent, 100);  // 10 for 5
  EXPECT_EQ(outcomes[1].error_percent, -50);  // 10 for 20
  EXPECT_FALSE(outcomes[2].error_percent);
  EXPECT_THAT(outcomes[2].failure, HasSubstr("exit status 3"));
}

TEST(Evidence, RunsARowOnAVariantOfTheProfile) {
  const FakeBenchmark fake(
      "for a in \"$@\"; do case \"$a\" in --fabric=sim:*) cp \"${a#*sim:}\" $dir/profile;; esac; done\n"
      "cat \"$record\" >> \"$out\"");
  const EvidenceRuns runs{
      .folder = fake.folder(), .fabric = [](const std::string& name) { return "sim:" + name; }, .finished = {}};
  auto rows = rows_of("cib,LATENCY,8,2048,1.5,0,a\n");
  run_evidence(rows, runs);
  EXPECT_EQ(Json::parse(read_text(fake.file("profile")))["wire"]["mtu_bytes"]["value"], 2048);
  rows[0].point.profile = Json{{"wire.no_such", 1}};
  EXPECT_THAT(error_of([&] { run_evidence(rows, runs); }), HasSubstr("no parameter wire.no_such"));
}

TEST(Evidence, RowsOfOlderCommitsCountByShape) {
  const auto rows = rows_of("cib,READ,1,1,10,0,abc\ncib,READ,2,1,20,0,abc\ncib,READ,4,1,40,0,abc\n");
  const auto twice = outcomes_of(rows, {20, 40, 80});
  for (const EvidenceOutcome& each : twice) EXPECT_NEAR(*each.error_percent, 0, 1e-9);
  const auto bent = outcomes_of(rows, {20, 40, 40});  // the medians are 20 and 40
  EXPECT_NEAR(*bent[2].error_percent, -50, 1e-9);
  const std::vector<EvidenceRow> two(rows.begin(), rows.begin() + 2);
  EXPECT_FALSE(outcomes_of(two, {20, 40})[0].error_percent);
}

TEST(ErrorFigures, UseAbsoluteErrors) {
  std::vector<double> errors;
  for (int i = 1; i <= 10; ++i) errors.push_back(i % 2 == 0 ? i : -i);
  const ErrorFigures figures = error_figures(errors);
  EXPECT_EQ(figures.median, 5.5);
  EXPECT_EQ(figures.percentile_90, 9);
  EXPECT_EQ(figures.worst, 10);
  EXPECT_EQ(figures.worst_at, 9u);
  EXPECT_EQ(error_figures({}).rows, 0u);
}

TEST(Knees, AreWhereACurveStopsRisingOrFalls) {
  EXPECT_EQ(knee({10, 50, 91, 100, 95}), 2u);
  EXPECT_EQ(knee({95, 100, 99}), 0u);
  EXPECT_EQ(cliff({35.1, 48.0, 50.3, 38.1}), 3u);
  EXPECT_EQ(cliff({100, 95, 60, 55}), 2u);
  EXPECT_EQ(cliff({14, 11, 8, 6, 4, 2}), 2u);  // a long slope: half of it
  EXPECT_EQ(cliff({10, 100, 90, 95}), std::nullopt);
}

TEST(Knees, AreComparedInStepsOfTheSweep) {
  const auto rows = rows_of("cib,READ,8,1,35,0,a\ncib,READ,16,2,48,0,a\ncib,READ,24,3,50,0,a\ncib,READ,32,4,38,0,a\n");
  const auto right_curves = measured_curves(outcomes_of(rows, {34, 49, 52, 40}));
  const auto right = compare_bends(right_curves);
  ASSERT_EQ(right.size(), 2u);
  EXPECT_EQ(right[0].kind, "knee");
  EXPECT_EQ(right[0].theirs, 16);
  EXPECT_EQ(right[1].kind, "cliff");
  EXPECT_EQ(right[1].ours, 32);
  EXPECT_TRUE(right[0].near && right[1].near);
  const auto flat_curves = measured_curves(outcomes_of(rows, {34, 49, 52, 53}));
  const auto flat = compare_bends(flat_curves);  // the cliff is missing
  EXPECT_STREQ(flat[1].verdict(), "missing");
  EXPECT_EQ(flat[1].ours, std::nullopt);
  const auto early_curves = measured_curves(outcomes_of(rows, {52, 30, 30, 30}));  // it falls, and never rises
  const auto early = compare_bends(early_curves);
  EXPECT_STREQ(early[0].verdict(), "within a step");
  EXPECT_STREQ(early[1].verdict(), "elsewhere");
  const std::vector<EvidenceRow> few(rows.begin(), rows.begin() + 3);
  EXPECT_TRUE(measured_curves(outcomes_of(few, {1, 2, 3})).empty());
}

TEST(MeasuredCurves, AreDrawnWithOurs) {
  const auto rows = rows_of("cib,READ,8,1,35,0,a\ncib,READ,16,2,48,0,a\ncib,READ,24,3,50,0,a\ncib,READ,32,4,38,0,a\n");
  TempFolder folder;
  std::vector<std::filesystem::path> figures;
  try {
    figures = draw_curves(measured_curves(outcomes_of(rows, {34, 49, 52, 40})), folder.file("figures"));
  } catch (const Error& error) {
    if (std::string(error.what()).find("not installed") != std::string::npos) GTEST_SKIP() << error.what();
    throw;
  }
  ASSERT_EQ(figures.size(), 1u);
  EXPECT_EQ(figures[0].filename(), "a-cib-window.svg");
  const std::string figure = read_text(figures[0]);
  EXPECT_THAT(figure, HasSubstr("SIMULATED"));
  EXPECT_THAT(figure, HasSubstr("verb=READ"));
}

TEST(Fitted, ParameterNamesARowItsSourceOrItsSet) {
  const auto rows = rows_of("cib,READ,8,4,12.5,0.1,run-a\n");
  for (const char* name : {"toy", "run-a", "run-a: verb=READ window=8 batch=4"}) {
    EXPECT_TRUE(is_fitted_to(name, rows[0])) << name;
  }
  EXPECT_FALSE(is_fitted_to("run-b", rows[0]));
}

TEST(Validation, TextHasEveryRowWithErrorOrReason) {
  auto rows = rows_of("cib,READ,8,4,10,0,a\ncib,READ,16,4,10,0,a\n");
  Validation validation;
  validation.outcomes = outcomes_of(rows, {9, 10});
  EXPECT_TRUE(validation.good());
  EXPECT_THAT(validation_summary(validation),
              testing::ContainsRegex("cib +measured +prediction +\\| +2 +5\\.0 +10\\.0 +10\\.0 \\| met"));
  EXPECT_THAT(validation_rows(validation),
              testing::ContainsRegex("window=8 batch=4 +\\| +10 +9\\.00 +-10\\.0 \\| +\\| prediction"));
  EXPECT_THAT(validation_summary(validation),
              testing::ContainsRegex("measured rate below 64 KB +\\| +2 +5\\.0 +10\\.0 +10\\.0 \\| +0 +0 +-"));
  rows[1].not_run = "no profile";
  validation.outcomes = outcomes_of(rows, {5, 10});
  EXPECT_FALSE(validation.good());
  EXPECT_THAT(validation_summary(validation), HasSubstr("NOT met"));
  EXPECT_THAT(validation_summary(validation), HasSubstr("not run: 1 row of toy on cib: no profile\n"));
  EXPECT_THAT(validation_rows(validation),
              testing::ContainsRegex("window=16 batch=4 +\\| +10 \\| not run: no profile"));
}

}  // namespace
}  // namespace verbscope
