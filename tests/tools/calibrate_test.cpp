// Parts of a joint fit: parameters of a profile, rows, and errors on changed profiles.
#include "tools/calibrate/calibrate.hpp"

#include <cmath>

#include "tests/harness/fakes.hpp"
#include "tests/harness/program.hpp"
#include "tests/tools/toy_profile.hpp"
#include "tools/calibrate/parameters.hpp"

namespace verbscope {
namespace {

TEST(CalibratedParameters, AreTheMarkedParametersOfTheProfile) {
  const auto parameters = toy_parameters();
  ASSERT_EQ(parameters.size(), 2u);
  EXPECT_EQ(parameters[0].name, "nic.send_ns");
  EXPECT_TRUE(parameters[0].integer);
  EXPECT_EQ(parameters[0].value, 100);
  EXPECT_EQ(parameters[1].name, "nic.recv.recv_ns");
  EXPECT_EQ(parameters[1].row, "recv");
  EXPECT_FALSE(parameters[1].integer);
}

TEST(CalibratedParameters, WithoutRowOrPositiveValueAreErrors) {
  for (const char* text : {R"({"a": {"value": 1, "source": "calibrated", "cite": "c"}})",
                           R"({"a": {"value": 0, "source": "calibrated", "row": "r", "cite": "c"}})"}) {
    const Json profile = Json::parse(text);
    EXPECT_THAT(error_of([&] { calibrated_parameters(profile, "toy.json"); }), testing::HasSubstr("toy.json: a: "));
  }
}

TEST(CalibratedParameters, ExcludeNames) {
  const Json profile = Json::parse(R"({"a": {"value": "oldest", "source": "calibrated", "row": "r", "cite": "c"}})");
  EXPECT_THAT(calibrated_parameters(profile, "toy.json"), testing::IsEmpty());
}

TEST(CalibratedParameters, ReplaceChangesOnlyValuesAndRows) {
  const Json changed = with_values(Json::parse(kProfile), fit_parameters(toy_parameters()), {49.7, 95.250001});
  std::string expected = kProfile;
  expected.replace(expected.find("100"), 3, "50");
  expected.replace(expected.find("\"send\""), 6, "\"60 rows, seed 1\"");
  expected.replace(expected.find("50.5"), 4, "95.25");
  expected.replace(expected.find("\"recv\", \"cite\""), 6, "\"60 rows, seed 1\"");
  EXPECT_EQ(replace_parameters(kProfile, toy_parameters(), changed, "60 rows, seed 1", "t"), expected);
}

EvidenceRow row_of(const std::string& id, bool calibration, bool measured) {
  EvidenceRow row;
  row.point.id = id;
  row.point.where = "source";
  row.point.cluster = "cib";
  row.point.value = 10;
  row.point.calibration = calibration;
  row.point.run = {.benchmark = "send_rate", .result_key = "rate_mops", .keys = {{.key = "size", .run = id}}};
  if (measured) row.columns["window"] = 1;
  return row;
}

TEST(FitRows, ArePublishedCalibrationRowsAndDrawnMeasuredRows) {
  std::vector<EvidenceRow> rows{row_of("fitted", true, false), row_of("predicted", false, false),
                                row_of("elsewhere", true, false), row_of("later", true, false),
                                row_of("bound", true, false)};
  rows[2].point.cluster = "cx3";
  rows[3].not_run = "needs a system";
  rows[4].point.comparison = Comparison::at_least;
  for (int i = 0; i < 100; ++i) rows.push_back(row_of(fmt::format("m{}", i), false, true));
  const auto taken = rows_to_fit(rows, "cib", {.rows = 60, .seed = 1});
  EXPECT_EQ(taken.size(), 60u);
  EXPECT_EQ(taken[0], 0u);
  EXPECT_GE(taken[1], 5u);
  EXPECT_EQ(taken, rows_to_fit(rows, "cib", {.rows = 60, .seed = 1}));
  EXPECT_NE(taken, rows_to_fit(rows, "cib", {.rows = 60, .seed = 2}));
  EXPECT_EQ(rows_to_fit(rows, "cib", {.rows = 60, .seed = 1, .set = "no such set"}), (std::vector<std::size_t>{0}));
  rows[5].by_shape = true;  // alone, it has no shape
  EXPECT_EQ(rows_to_fit({rows.begin(), rows.begin() + 6}, "cib", {.rows = 60, .seed = 1}),
            (std::vector<std::size_t>{0}));
}

TEST(FitRows, JointFitNameParsesBack) {
  const JointFitName name{.rows = 60, .seed = 7};
  EXPECT_EQ(parse_joint_fit(name.text())->seed, 7u);
  const JointFitName of_a_set{.rows = 60, .seed = 7, .set = "rc-swarm"};
  EXPECT_EQ(of_a_set.text(), "60 rows of rc-swarm, seed 7");
  EXPECT_EQ(parse_joint_fit(of_a_set.text())->set, "rc-swarm");
  for (const char* other : {"atc16-t5-send-cx3", "60 rows, seed x", " rows, seed 1"}) {
    EXPECT_FALSE(parse_joint_fit(other)) << other;
  }
}

// The fake returns a rate of send_ns / 100 from its profile.
TEST(FitMeasurer, RunsRowsOnceOnEachChangedProfile) {
  const FakeBenchmark fake(
      "echo x >> $dir/ran\nfor a in \"$@\"; do case \"$a\" in --fabric=sim:*) p=${a#*sim:};; --size=bad) exit 3;; "
      "esac; done\n"
      "v=$(grep -A1 send_ns \"$p\" | tail -n 1 | tr -cd 0-9)\nsed \"s/\\\"rate_mops\\\":10.0/\\\"rate_mops\\\":$v/\" "
      "\"$record\" >> \"$out\"",
      "sim:toy");
  FitMeasurer measurer({row_of("a", true, false), row_of("bad", true, false)}, Json::parse(kProfile),
                       fit_parameters(toy_parameters()), fake.folder(), 1, nullptr);
  EXPECT_NEAR(measurer.log_errors({100, 50}, {0})[0], std::log(10), 1e-6);  // 100 for 10
  EXPECT_NEAR(measurer.log_errors({20, 50}, {0})[0], std::log(2), 1e-6);
  EXPECT_EQ(read_text(fake.file("ran")), "x\nx\n");
  const auto both = measurer.log_errors({20, 50}, {0, 1});
  EXPECT_NEAR(both[0], std::log(2), 1e-6);
  EXPECT_NEAR(both[1], std::log(10), 1e-6);  // a failure
  EXPECT_EQ(read_text(fake.file("ran")), "x\nx\nx\n");
}

const std::string kCalibrate = VERBSCOPE_BINARY_DIR "/bin/calibrate";

TEST(Calibrate, UnknownClusterIsAnError) {
  const Ran ran = run({"cibb"}, kCalibrate);
  EXPECT_NE(ran.end, "exit status 0");
  EXPECT_THAT(ran.err, testing::AllOf(testing::StartsWith("calibrate: "), testing::HasSubstr("cibb")));
}

// ConnectX has two parameters and three rows: a parameter that is off by half comes back, to a tenth of that, and only
// when asked to.
TEST(Calibrate, FitsAndWritesWithWriteOption) {
  TempFolder folder;
  const std::string profile = folder.file("cx.json");
  std::string before = read_text(VERBSCOPE_SOURCE_DIR "/configs/clusters/cx.json");
  const std::string key = "\"receive_packet_ns\": {\"value\": ";
  const std::size_t at = before.find(key) + key.size();
  const double right = std::stod(before.substr(at));
  before.replace(at, before.find(',', at) - at, fmt::format("{:.1f}", right * 1.5));
  write_text(profile, before);
  const Ran ran = run({profile, "--known_within", "0"}, kCalibrate);
  EXPECT_EQ(ran.end, "exit status 0") << ran.err;
  EXPECT_THAT(ran.out,
              testing::ContainsRegex("^cx: 2 parameters, no known values, 3 rows, seed 1; .* at most 2 h 00 min, "
                                     "at least about [0-9.]+ (s|min)"));
  EXPECT_THAT(ran.out, testing::ContainsRegex("atc16-t5-recv-cx .* -[0-9.]+ +[-+]?[0-9.]+ "));
  EXPECT_THAT(ran.out, testing::HasSubstr("error of rows left out"));
  EXPECT_EQ(read_text(profile), before);
  EXPECT_EQ(run({profile, "--known_within", "0", "--write"}, kCalibrate).end, "exit status 0");
  const std::string after = read_text(profile);
  EXPECT_NEAR(std::stod(after.substr(after.find(key) + key.size())), right, right * 0.05);
  EXPECT_THAT(after, testing::HasSubstr("\"row\": \"60 rows, seed 1\""));
}

}  // namespace
}  // namespace verbscope
