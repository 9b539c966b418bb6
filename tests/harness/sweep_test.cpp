// Parsing and expansion of sweep files, and their error messages.
#include "harness/sweep/sweep.hpp"

#include <algorithm>
#include <numeric>
#include <set>

#include "tests/harness/fakes.hpp"

namespace verbscope {
namespace {

std::string sweep_text(const std::string& rest) {
  return R"({"schema": "verbscope.sweep/1", "benchmark": "send_rate", )" + rest + "}";
}

std::vector<std::string> params_of(const std::string& text, const std::string& fabric = "sim:cib") {
  std::vector<std::string> out;
  for (const Point& point : expand_sweep(parse_sweep(text, "s.json"), fabric)) out.push_back(dump_json(point.params));
  return out;
}

std::string parse_error(const std::string& text) {
  return error_of([&] { parse_sweep(text, "s.json"); });
}

std::string check_error(const std::string& rest) {
  return error_of([&] {
    Sweep parsed = parse_sweep(sweep_text(rest), "s.json");
    check_sweep(parsed, parse_benchmark_spec(kFakeDescription, "d"));
  });
}

TEST(Sweep, VaryGivesTheCrossProductLastKeyFastest) {
  const auto params =
      params_of(sweep_text(R"("fixed": {"load": 1}, "vary": {"size": [1, 2], "connection": ["RC", "UD"]})"));
  EXPECT_EQ(params, (std::vector<std::string>{
                        R"({"connection":"RC","load":1,"size":1})", R"({"connection":"UD","load":1,"size":1})",
                        R"({"connection":"RC","load":1,"size":2})", R"({"connection":"UD","load":1,"size":2})"}));
}

TEST(Sweep, PointsOverrideFixedAndEachIsCrossedWithVary) {
  const auto params =
      params_of(sweep_text(R"("fixed": {"load": 1}, "points": [{}, {"load": 2}], "vary": {"size": [1, 2]})"));
  EXPECT_EQ(params, (std::vector<std::string>{R"({"load":1,"size":1})", R"({"load":1,"size":2})",
                                              R"({"load":2,"size":1})", R"({"load":2,"size":2})"}));
}

TEST(Sweep, RemovesDuplicatesAndTreatsDashesAsUnderscores) {
  EXPECT_EQ(params_of(sweep_text(R"("points": [{"post-list": 1}, {"post_list": 1}])")),
            (std::vector<std::string>{R"({"post_list":1})"}));
}

// The places of the points of each round, in the order in which they run.
std::vector<std::vector<std::size_t>> rounds_of(std::uint64_t seed, int repetitions) {
  const std::string text = fmt::format(
      R"("vary": {{"size": [1, 2, 3, 4, 5], "load": [1, 2]}}, "repetitions": {}, "seed": {})", repetitions, seed);
  std::vector<std::vector<std::size_t>> rounds(static_cast<std::size_t>(repetitions));
  std::size_t i = 0;
  for (const Point& point : expand_sweep(parse_sweep(sweep_text(text), "s"), "null")) {
    EXPECT_EQ(point.repetition, static_cast<int>(i++ / 10)) << "a round ends before the next begins";
    EXPECT_EQ(point.seed, seed + static_cast<std::uint64_t>(point.repetition));
    EXPECT_EQ(point.params.at("size"), 1 + point.place / 2);  // the file's order: the last key varies fastest
    EXPECT_EQ(point.params.at("load"), 1 + point.place % 2);
    rounds[static_cast<std::size_t>(point.repetition)].push_back(point.place);
  }
  return rounds;
}

TEST(Sweep, ShufflesEachRepetition) {
  const auto rounds = rounds_of(40, 3);
  std::vector<std::size_t> file(10);
  std::iota(file.begin(), file.end(), std::size_t{0});
  std::set<std::vector<std::size_t>> orders;
  for (const auto& round : rounds) {
    EXPECT_THAT(round, testing::UnorderedElementsAreArray(file));
    EXPECT_NE(round, file);
    orders.insert(round);
  }
  EXPECT_EQ(orders.size(), 3u);
}

TEST(Sweep, OrderDependsOnTheSeedOnly) {
  EXPECT_EQ(rounds_of(40, 3), rounds_of(40, 3));
  EXPECT_NE(rounds_of(40, 3), rounds_of(80, 3));
  const auto few = rounds_of(40, 2), more = rounds_of(40, 5);  // --resume can add repetitions
  EXPECT_TRUE(std::equal(few.begin(), few.end(), more.begin()));
}

// Each point is early as often as late: over 400 rounds of 10 points the mean place of one is 4.5 with a standard
// error of sqrt((100 - 1) / 12 / 400) = 0.14; the largest of ten deviations stays below four of these.
TEST(Sweep, ShufflesWithoutBias) {
  std::vector<double> sums(10);
  for (const auto& round : rounds_of(1, 400)) {
    for (std::size_t i = 0; i < round.size(); ++i) sums[round[i]] += static_cast<double>(i);
  }
  for (const double sum : sums) EXPECT_NEAR(sum / 400, 4.5, 0.57);
}

TEST(Sweep, ShufflesSeveralBenchmarks) {
  const std::string text = R"({"schema": "verbscope.sweep/1", "benchmark": ["send_rate", "recv_rate"],
    "vary": {"size": [1, 2, 3, 4, 5, 6, 7, 8]}, "repetitions": 2})";
  const auto points = expand_sweep(parse_sweep(text, "s"), "null");
  ASSERT_EQ(points.size(), 32u);
  const auto in_first_half = std::count_if(points.begin(), points.begin() + 8,
                                           [](const Point& point) { return point.benchmark == "send_rate"; });
  EXPECT_GT(in_first_half, 0);
  EXPECT_LT(in_first_half, 8);
}

TEST(Sweep, PointsHaveTheEntryAndItsLabel) {
  const Sweep sweep = parse_sweep(sweep_text(R"("vary": {"size": [1, 2]}, "points": [{"label": "one", "load": 1},
    {"fabrics": ["null"]}, {"load": 2}], "show": ["rate_mops", "extra"])"),
                                  "s.json");
  EXPECT_EQ(sweep.points[0].label, "one");
  EXPECT_EQ(sweep.points[1].label, "");
  EXPECT_EQ(sweep.show, (std::vector<std::string>{"rate_mops", "extra"}));
  std::vector<std::size_t> entries;
  for (const Point& point : expand_sweep(sweep, "sim:cib")) {
    entries.push_back(point.entry);
    EXPECT_FALSE(point.params.contains("label"));
  }
  EXPECT_EQ(entries, (std::vector<std::size_t>{0, 0, 2, 2}));
}

TEST(Sweep, ChecksLabelsAndShownKeys) {
  EXPECT_THAT(parse_error(sweep_text(R"("points": [{"label": 1}])")), testing::HasSubstr("points[0]: label"));
  EXPECT_THAT(parse_error(sweep_text(R"("show": [])")), testing::HasSubstr("at least one key"));
  EXPECT_THAT(parse_error(sweep_text(R"("show": "rate_mops")")), testing::HasSubstr("show"));
  EXPECT_THAT(parse_error(sweep_text(R"("fixed": {"a": 1}, "label": "x")")), testing::HasSubstr("label"));
}

TEST(Sweep, ABenchmarkAloneIsOnePoint) {
  EXPECT_EQ(params_of(R"({"schema": "verbscope.sweep/1", "benchmark": "send_rate"})"),
            (std::vector<std::string>{"{}"}));
}

TEST(Sweep, FabricsLimitPointsToTheirCluster) {
  const std::string text =
      sweep_text(R"("fabrics": ["sim:cib", "sim:cx3"], "points": [{"fabrics": ["sim:cib"], "size": 1}, {"size": 2}])");
  EXPECT_EQ(params_of(text, "sim:cib").size(), 2u);
  EXPECT_EQ(params_of(text, "sim:/tmp/a/cib.json").size(), 2u);
  EXPECT_EQ(params_of(text, "sim:cx3"), (std::vector<std::string>{R"({"size":2})"}));
  EXPECT_EQ(error_of([&] { params_of(text, "null"); }), R"(s.json: no point runs on null: see its "fabrics")");
}

TEST(Sweep, AFabricKindAllowsAllOfThatKind) {
  EXPECT_TRUE(fabric_allowed({"sim"}, "sim:cx"));
  EXPECT_FALSE(fabric_allowed({"sim"}, "verbs"));
  EXPECT_FALSE(fabric_allowed({"sim:cib"}, "sim:cx"));
}

TEST(Sweep, SetReplacesTheKeyEverywhere) {
  Sweep sweep = parse_sweep(sweep_text(R"("points": [{"load": 1}, {"load": 2}], "vary": {"size": [1, 2]})"), "s");
  override_key(sweep, "size", 9);
  override_key(sweep, "load", 5);
  const auto points = expand_sweep(sweep, "null");
  ASSERT_EQ(points.size(), 1u);
  EXPECT_EQ(dump_json(points[0].params), R"({"load":5,"size":9})");
}

TEST(Sweep, VaryReplacesTheKeyEverywhereAndVariesFastest) {
  Sweep sweep = parse_sweep(sweep_text(R"("fixed": {"load": 1}, "vary": {"size": [1, 2]})"), "s");
  vary_key(sweep, "load", {3, 4});
  std::vector<std::string> params;
  for (const Point& point : expand_sweep(sweep, "null")) params.push_back(dump_json(point.params));
  EXPECT_EQ(params, (std::vector<std::string>{R"({"load":3,"size":1})", R"({"load":4,"size":1})",
                                              R"({"load":3,"size":2})", R"({"load":4,"size":2})"}));
}

TEST(Sweep, FixedOnOverridesFixedAndPointsOverrideFixedOn) {
  const std::string text = sweep_text(
      R"("fixed": {"load": 1, "duration": "3s"}, "fixed_on": {"sim": {"duration": "1ms"}, "sim:cx3": {"load": 2}},
         "points": [{}, {"duration": "2ms"}])");
  EXPECT_EQ(params_of(text, "sim:cx3"),
            (std::vector<std::string>{R"({"duration":"1ms","load":2})", R"({"duration":"2ms","load":2})"}));
  EXPECT_EQ(params_of(text, "verbs")[0], R"({"duration":"3s","load":1})");
  EXPECT_EQ(parse_error(sweep_text(R"("fixed_on": {"sim": {"size": 1}}, "vary": {"size": [1]})")),
            R"(s.json: "size" is in both fixed_on and vary)");
}

// The points of a sweep that was checked with the fake benchmark.
std::vector<std::string> checked_params(const std::string& rest, const std::string& fabric = "sim:cib") {
  Sweep sweep = parse_sweep(sweep_text(rest), "s.json");
  check_sweep(sweep, parse_benchmark_spec(kFakeDescription, "d"));
  std::vector<std::string> out;
  for (const Point& point : expand_sweep(sweep, fabric)) out.push_back(dump_json(point.params));
  return out;
}

TEST(Sweep, ComputesFormulasFromOptionsAndDefaults) {
  EXPECT_EQ(checked_params(R"("fixed": {"post_list": "clients / 2"}, "vary": {"clients": [4, 8]})"),
            (std::vector<std::string>{R"({"clients":4,"post_list":2})", R"({"clients":8,"post_list":4})"}));
  // 64 is the default of size; a formula may name another one.
  EXPECT_EQ(checked_params(R"("fixed": {"clients": "2 * (size - 60) + 1", "post_list": "clients*3"})"),
            (std::vector<std::string>{R"({"clients":9,"post_list":27})"}));
  EXPECT_EQ(checked_params(R"("fixed": {"post_list": 3, "size": "10 - post_list - 2"})"),
            (std::vector<std::string>{R"({"post_list":3,"size":5})"}));
}

TEST(Sweep, FormulaErrorsNameFileKeyAndReason) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> cases = {
      {R"("fixed": {"post_list": "clients / 2", "clients": 5})", {"\"post_list\"", "5 / 2 leaves a remainder"}},
      {R"("fixed": {"post_list": "clients / 2"})", {"\"post_list\"", "\"clients\" has no value"}},
      {R"--("fixed": {"post_list": "size / (size - 64)"})--", {"\"post_list\"", "division of 64 by 0"}},
      {R"("fixed": {"post_list": "clientz / 2"})", {"\"post_list\"", "did you mean clients?"}},
      {R"("fixed": {"post_list": "load / 2"})", {"\"post_list\"", "load is not a whole number"}},
      {R"("fixed": {"post_list": "size +"})", {"\"post_list\"", "ends where a value is expected"}},
      {R"("fixed": {"post_list": "(size"})", {"\"post_list\"", "parenthesis is not closed"}},
      {R"("fixed": {"post_list": "size 2"})", {"\"post_list\"", "expected an operator at"}},
      {R"("fixed": {"post_list": "size * 99999999999999999999"})", {"\"post_list\"", "too large"}},
      {R"("fixed": {"post_list": "clients", "clients": "post_list"})", {"depends on itself"}},
      {R"("fixed": {"size": "65 * 64"})", {"\"size\"", "from 0 to 4096"}}};
  for (const auto& [rest, parts] : cases) {
    const std::string error = error_of([&, &rest = rest] { checked_params(rest); });
    EXPECT_THAT(error, testing::StartsWith("s.json: ")) << rest;
    for (const std::string& part : parts) EXPECT_THAT(error, testing::HasSubstr(part)) << rest;
  }
}

TEST(Sweep, IgnoresClientsOnHardware) {
  EXPECT_EQ(checked_params(R"("vary": {"clients": [4, 8], "size": [1, 2]})", "verbs"),
            (std::vector<std::string>{R"({"size":1})", R"({"size":2})"}));
  EXPECT_THAT(error_of([] { checked_params(R"("fixed": {"clients": 4, "post_list": "clients"})", "verbs"); }),
              testing::HasSubstr("on hardware, the hosts file gives the number of clients"));
}

TEST(Sweep, RejectsUnknownFabrics) {
  for (const char* wrong : {"cib", "sim5", "sim:", "verb", ""}) {
    for (const char* form :
         {R"("fabrics": ["{}"])", R"("points": [{{"fabrics": ["{}"]}}])", R"("fixed_on": {{"{}": {{}}}})"}) {
      EXPECT_THAT(parse_error(sweep_text(fmt::format(fmt::runtime(form), wrong))),
                  testing::AllOf(testing::StartsWith("s.json: "),
                                 testing::HasSubstr("expected sim:NAME, sim, verbs, null or host"),
                                 testing::HasSubstr(fmt::format("\"{}\"", wrong))));
    }
  }
}

TEST(Sweep, ListsTheFabricsThatNeedNoHosts) {
  const auto places = [](const std::string& rest) { return fabrics_without_hosts(parse_sweep(sweep_text(rest), "s")); };
  EXPECT_EQ(places(R"("fabrics": ["sim:cx3", "verbs", "sim:cib"])"), (std::vector<std::string>{"sim:cx3", "sim:cib"}));
  EXPECT_EQ(places(R"("points": [{"fabrics": ["null"]}, {"fabrics": ["sim:cib", "null"]}])"),
            (std::vector<std::string>{"null", "sim:cib"}));
  EXPECT_TRUE(places(R"("fabrics": ["sim"])").empty());
}

TEST(Sweep, ReportsTheLineOfMalformedJson) {
  EXPECT_THAT(parse_error("{\n\"schema\": \"verbscope.sweep/1\",\n\"benchmark\" \"x\"}"),
              testing::StartsWith("s.json:3: "));
}

TEST(Sweep, FormErrorsNameFileAndKey) {
  EXPECT_EQ(parse_error(R"({"schema": "verbscope.sweep/2", "benchmark": "x"})"),
            R"(s.json: key "schema": expected "verbscope.sweep/1", got "verbscope.sweep/2")");
  EXPECT_THAT(parse_error(sweep_text(R"("varry": {})")),
              testing::AllOf(testing::HasSubstr("varry"), testing::HasSubstr("vary")));
  EXPECT_THAT(parse_error(sweep_text(R"("repetitions": 0)")), testing::HasSubstr("repetitions"));
  EXPECT_THAT(parse_error(sweep_text(R"("repetitions": "two")")), testing::HasSubstr("repetitions"));
  EXPECT_EQ(parse_error(sweep_text(R"("vary": {"size": []})")),
            R"(s.json: vary: "size": expected a list of at least one value)");
  EXPECT_EQ(parse_error(sweep_text(R"("vary": {"size": [[1]]})")),
            R"(s.json: vary: "size": expected single values in the list, got array)");
  EXPECT_EQ(parse_error(sweep_text(R"("fixed": {"size": [1]})")),
            R"(s.json: fixed: "size": expected one value, got array)");
  EXPECT_EQ(parse_error(sweep_text(R"("fixed": {"a-b": 1, "a_b": 2})")),
            R"(s.json: fixed: "a_b" is given more than once)");
  EXPECT_EQ(parse_error(sweep_text(R"("fixed": {"size": 1}, "vary": {"size": [2]})")),
            R"(s.json: "size" is in both fixed and vary)");
  EXPECT_EQ(parse_error(sweep_text(R"("points": [{}, {"size": 1}], "vary": {"size": [2]})")),
            R"(s.json: points[1]: "size" is also in vary)");
  EXPECT_THAT(parse_error(sweep_text(R"("points": [])")), testing::HasSubstr("at least one point"));
  EXPECT_THAT(parse_error(sweep_text(R"("points": [3])")), testing::HasSubstr("points[0]: expected an object"));
}

TEST(Sweep, RejectsTooManyPointsBeforeExpandingThem) {
  std::string vary;
  for (const char* key : {"a", "b", "c", "d", "e", "f", "g", "h"}) {
    vary += (vary.empty() ? "\"" : ", \"") + std::string(key) + "\": [1, 2, 3, 4, 5, 6, 7, 8, 9]";
  }
  EXPECT_EQ(parse_error(sweep_text("\"vary\": {" + vary + "}")),
            "s.json: points, vary and repetitions give more than 20000 points");  // 9^8 = 43 million
}

TEST(Sweep, ChecksKeysAndValuesAgainstTheBenchmark) {
  EXPECT_EQ(check_error(R"("fixed": {"sise": 1})"),
            R"(s.json: fixed: send_rate has no option "sise"; did you mean size?)");
  EXPECT_EQ(check_error(R"("vary": {"size": [1, "2"]})"), R"(s.json: vary: "size": expected an integer, got "2")");
  EXPECT_EQ(check_error(R"("points": [{"size": 1.5}])"), R"(s.json: points[0]: "size": expected an integer, got 1.5)");
  EXPECT_EQ(check_error(R"("fixed": {"connection": "XRC"})"),
            R"(s.json: fixed: "connection": expected RC, UC or UD, got "XRC"; did you mean RC?)");
  EXPECT_EQ(check_error(R"("fixed": {"validate": 1})"), R"(s.json: fixed: "validate": expected a boolean, got 1)");
  EXPECT_THAT(check_error(R"("fixed": {"duration": "2 weeks"})"),
              testing::HasSubstr(R"("duration": expected a duration)"));
  EXPECT_EQ(check_error(R"("vary": {"size": [64, -1]})"),
            R"(s.json: vary: key "size": expected integer from 0 to 4096, got number -1)");
  EXPECT_THAT(check_error(R"("points": [{"size": 4097}])"), testing::StartsWith(R"(s.json: points[0]: key "size")"));
  EXPECT_THAT(check_error(R"("fixed": {"size": 18446744073709551615})"), testing::HasSubstr("from 0 to 4096"));
  for (const char* zero : {"0", "\"0s\"", "1e-15"}) {  // the last is below the resolution of 1 ps
    EXPECT_EQ(check_error(fmt::format(R"("vary": {{"duration": [1, {}]}})", zero)),
              fmt::format(R"(s.json: vary: "duration": expected more than 0, got {})", zero));
  }
  for (const char* wrong : {"-1", "1e300", "\"1e300s\""}) {
    EXPECT_THAT(check_error(fmt::format(R"("vary": {{"duration": [{}]}})", wrong)),
                testing::HasSubstr(R"("duration": expected a duration)"));
  }
  EXPECT_EQ(check_error(R"("fixed": {"seed": 3})"),
            R"(s.json: fixed: "seed" is set by the harness: a sweep cannot set it)");
}

// A point has one record.
TEST(Sweep, RejectsOptionsThatWriteSeveralRecordsOrNone) {
  for (const std::string option : {"all", "run_infinitely"}) {
    std::string description = kFakeDescription;
    const BenchmarkSpec spec = parse_benchmark_spec(description.replace(description.find("validate"), 8, option), "d");
    Sweep sweep = parse_sweep(sweep_text(fmt::format(R"("fixed": {{"{}": false}})", option)), "s.json");
    check_sweep(sweep, spec);
    sweep = parse_sweep(sweep_text(fmt::format(R"("fixed": {{"{}": true}})", option)), "s.json");
    EXPECT_THROW(check_sweep(sweep, spec), Error) << option;
  }
}

TEST(Sweep, ChecksTheSeedOfTheLastRepetition) {
  const BenchmarkSpec spec = parse_benchmark_spec(kFakeDescription, "d");  // seeds up to 1000
  const auto sweep = [](const std::string& rest) { return parse_sweep(sweep_text(rest), "s.json"); };
  Sweep fits = sweep(R"("seed": 999, "repetitions": 2)");
  EXPECT_NO_THROW(check_sweep(fits, spec));
  EXPECT_EQ(check_error(R"("seed": 999, "repetitions": 3)"),
            "s.json: seed 999, repetitions 3: the largest seed of send_rate is 1000");
  EXPECT_THAT(check_error(R"("seed": 18446744073709551615, "repetitions": 2)"), testing::HasSubstr("the largest seed"));
}

TEST(Sweep, AcceptsValidValuesOfEveryType) {
  const std::string good =
      R"("fixed": {"connection": "UD", "size": 0, "load": 1, "validate": true, "duration": "2ms"}, "vary": {"post_list": [1]})";
  Sweep parsed = parse_sweep(sweep_text(good), "s");
  EXPECT_NO_THROW(check_sweep(parsed, parse_benchmark_spec(kFakeDescription, "d")));
}

TEST(Sweep, AnEntryMayNameOneBenchmark) {
  const auto text = [](const char* points) {
    return fmt::format(R"({{"schema": "verbscope.sweep/1", "benchmark": ["send_rate", "recv_rate"], "points": {}}})",
                       points);
  };
  Sweep sweep = parse_sweep(
      text(R"([{"benchmark": "recv_rate", "size": 1, "own": 2}, {"benchmark": "send_rate", "size": 1}])"), "s");
  const std::vector<Point> points = expand_sweep(sweep, "null");
  ASSERT_EQ(points.size(), 2u);
  EXPECT_EQ(points[0].benchmark, "send_rate");
  EXPECT_EQ(dump_json(points[0].params), R"({"size":1})");
  EXPECT_EQ(points[1].benchmark, "recv_rate");
  EXPECT_NO_THROW(check_sweep(sweep, parse_benchmark_spec(kFakeDescription, "d")));  // "own" is recv_rate's
  EXPECT_EQ(error_of([&] { parse_sweep(text(R"([{"benchmark": "read_rate"}])"), "s"); }),
            R"(s: points[0]: "benchmark": "read_rate" is not one of the sweep's benchmarks)");
  EXPECT_EQ(error_of([&] { parse_sweep(text(R"([{"benchmark": "send_rate"}])"), "s"); }),
            R"(s: no entry of points is for benchmark "recv_rate")");
}

TEST(Sweep, RecordsThePlaceOfAPointInItsFigure) {
  const Sweep sweep = parse_sweep(sweep_text(R"("figure": "p Fig 1", "vary": {"load": [1], "size": [1, 2]},
    "points": [{"label": "one"}], "show": ["rate_mops", "extra"])"),
                                  "s.json");
  EXPECT_EQ(dump_json(sweep_properties(sweep, expand_sweep(sweep, "null")[1])),
            R"({"sweep":"s.json","place":1,"label":"one","along":"size","figure":"p Fig 1","show":["extra"]})");
}

TEST(Sweep, EachBenchmarkRunsAllPoints) {
  const Sweep sweep = parse_sweep(
      R"({"schema": "verbscope.sweep/1", "benchmark": ["send_rate", "recv_rate"], "vary": {"size": [1, 2]}})", "s");
  const std::vector<Point> points = expand_sweep(sweep, "null");
  ASSERT_EQ(points.size(), 4u);
  EXPECT_EQ(points[1].benchmark, "send_rate");
  EXPECT_EQ(points[2].benchmark, "recv_rate");
  EXPECT_EQ(points[2].params.at("size"), 1);
  for (const char* wrong : {"[]", R"(["a", "a"])", "[1]", "{}"}) {
    const std::string text = fmt::format(R"({{"schema": "verbscope.sweep/1", "benchmark": {}}})", wrong);
    EXPECT_THAT(error_of([&] { parse_sweep(text, "s"); }), testing::HasSubstr("\"benchmark")) << wrong;
  }
}

}  // namespace
}  // namespace verbscope
