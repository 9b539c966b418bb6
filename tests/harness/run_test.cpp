// Sweeps over fake benchmarks: the contents of the results file.
#include <set>

#include "common/cli.hpp"
#include "harness/point/run_sweep.hpp"
#include "tests/harness/fakes.hpp"

namespace verbscope {
namespace {

// Runs one point per size and counts runs in $dir/runs. Size 2 fails, size 3 interrupts the harness.
constexpr const char* kBody =
    "echo x >> $dir/runs\n"
    "case \"$all\" in\n"
    "*--size=2*) [ -e $dir/repaired ] || { echo broken >&2; exit 1; } ;;\n"
    "*--size=3*) [ -e $dir/repaired ] || { kill -INT $PPID; sleep 1000; } ;;\n"
    "esac\n"
    "cat $record > $out";

class SweepRun {
 public:
  explicit SweepRun(const std::string& vary, const std::string& body = kBody) : fake_(body) {
    write_text(fake_.file("sweep.json"),
               R"({"schema": "verbscope.sweep/1", "benchmark": "send_rate", "vary": )" + vary + "}");
    options.sweep = fake_.file("sweep.json");
    options.hosts = "null";
    options.out = fake_.file("results.jsonl");
  }

  int run() {
    std::FILE* out = std::fopen(fake_.file("output").c_str(), "w");
    struct Closer {
      std::FILE* file;
      ~Closer() { std::fclose(file); }
    } closer{out};
    return run_sweep(options, fake_.folder(), out);
  }
  // Runs the sweep and captures standard error.
  int run_heard(std::string& errors) {
    testing::internal::CaptureStderr();
    const int code = run();
    errors = testing::internal::GetCapturedStderr();
    return code;
  }
  std::string output() const { return read_text(fake_.file("output")); }
  std::size_t processes_started() const { return read_text(fake_.file("runs")).size() / 2; }
  void repair() const { write_text(fake_.file("repaired"), ""); }
  std::vector<Record> records() const { return read_results(options.out).records; }
  std::vector<int> sizes() const {
    std::vector<int> out;
    for (const Record& record : records()) out.push_back(record.config.at("point").at("params").at("size"));
    return out;
  }

  RunOptions options;

 private:
  FakeBenchmark fake_;
};

TEST(Run, WritesOneRecordPerPoint) {
  SweepRun sweep(R"({"size": [10, 11], "connection": ["RC", "UD"]})");
  EXPECT_EQ(sweep.run(), 0);
  ASSERT_EQ(sweep.records().size(), 4u);
  EXPECT_EQ(sweep.records()[3].config.at("point").at("params"), (Json{{"connection", "UD"}, {"size", 11}}));
  EXPECT_THAT(sweep.output(),
              testing::StartsWith("send_rate on null: 4 points\n[1/4] send_rate connection=RC size=10: 10.00 Mops ("));
}

TEST(Run, ContinuesAfterAFailedPoint) {
  SweepRun sweep(R"({"size": [1, 2, 4]})");
  std::string errors;
  EXPECT_EQ(sweep.run_heard(errors), 1);
  const auto records = sweep.records();
  ASSERT_EQ(records.size(), 3u);
  EXPECT_EQ(records[1].reason, "exit status 1: broken");
  EXPECT_EQ(records[2].status, RecordStatus::ok);
  EXPECT_THAT(sweep.output(), testing::HasSubstr("size=2: FAILED: exit status 1: broken"));
  EXPECT_THAT(errors, testing::HasSubstr("1 of 3 points failed; the first: exit status 1: broken\n"));
}

TEST(Run, ResumeRunsPointsThatAreNotOk) {
  SweepRun sweep(R"({"size": [1, 2, 4]})");
  EXPECT_EQ(sweep.run(), 1);
  sweep.repair();
  sweep.options.resume = true;
  EXPECT_EQ(sweep.run(), 0);
  EXPECT_EQ(sweep.processes_started(), 4u);
  ASSERT_EQ(sweep.records().size(), 4u);
  EXPECT_EQ(sweep.records()[3].config.at("point").at("params").at("size"), 2);
  EXPECT_EQ(sweep.run(), 0);
  EXPECT_EQ(sweep.processes_started(), 4u);
}

TEST(Run, RequiresResumeOrAppendForAnExistingFile) {
  SweepRun sweep(R"({"size": [1, 4]})");
  EXPECT_EQ(sweep.run(), 0);
  const std::string before = read_text(sweep.options.out);
  write_text(sweep.options.out, before.substr(0, before.find('\n') + 1));
  EXPECT_THAT(error_of([&] { sweep.run(); }),
              testing::AllOf(testing::HasSubstr("1 of these 2 points"), testing::HasSubstr("--resume"),
                             testing::HasSubstr("--append")));
  EXPECT_EQ(sweep.records().size(), 1u);
  sweep.options.append = true;
  EXPECT_EQ(sweep.run(), 0);
  EXPECT_EQ(sweep.sizes(), (std::vector<int>{1, 1, 4}));
}

TEST(Run, AppendsOtherPointsToAnExistingFile) {
  SweepRun sweep(R"({"size": [1]})");
  EXPECT_EQ(sweep.run(), 0);
  sweep.options.set = {"size=4"};
  EXPECT_EQ(sweep.run(), 0);
  EXPECT_EQ(sweep.sizes(), (std::vector<int>{1, 4}));
}

TEST(Run, RunsOnTheFabricsOfTheSweepByDefault) {
  SweepRun sweep(R"({"size": [1]}, "fabrics": ["null", "verbs"])");
  sweep.options.hosts = "";
  EXPECT_EQ(sweep.run(), 0);
  EXPECT_EQ(sweep.records().at(0).config.at("point").at("fabric"), "null");
  SweepRun kind(R"({"size": [1]}, "fabrics": ["sim"])");
  kind.options.hosts = "";
  EXPECT_THAT(error_of([&] { kind.run(); }),
              testing::AllOf(testing::StartsWith("--hosts: "), testing::HasSubstr("--hosts sim:cib")));
}

TEST(Run, RejectsAnUnknownClusterInTheSweep) {
  SweepRun sweep(R"({"size": [1]}, "fabrics": ["null", "sim:cibb"])");
  EXPECT_THAT(error_of([&] { sweep.run(); }),
              testing::AllOf(testing::HasSubstr("sweep.json: fabrics: "), testing::HasSubstr("did you mean cib?")));
}

TEST(Run, RunsABenchmarkWithVaryWithoutAFile) {
  SweepRun sweep(R"({"size": [1]})");
  sweep.options.sweep = "send_rate";
  sweep.options.vary = {"size=16,64", "connection=RC,UD"};
  sweep.options.set = {"post_list=size / 8"};
  EXPECT_EQ(sweep.run(), 0);
  std::vector<std::string> params;
  for (const Record& record : sweep.records()) params.push_back(dump_json(record.config.at("point").at("params")));
  EXPECT_EQ(params,
            (std::vector<std::string>{
                R"({"connection":"RC","post_list":2,"size":16})", R"({"connection":"UD","post_list":2,"size":16})",
                R"({"connection":"RC","post_list":8,"size":64})", R"({"connection":"UD","post_list":8,"size":64})"}));
  for (const char* wrong : {"size", "size=", "size=16,", "sise=1", "seed=1,2"}) {
    sweep.options.vary = {wrong};
    EXPECT_THAT(error_of([&] { sweep.run(); }), testing::StartsWith("--vary: ")) << wrong;
  }
}

TEST(Run, ProgressPrintsTheLabelsOfPoints) {
  SweepRun sweep(R"({"size": [1]}, "points": [{"label": "one by one", "post_list": 1}, {"post_list": 16}])");
  EXPECT_EQ(sweep.run(), 0);
  EXPECT_THAT(sweep.output(), testing::HasSubstr("send_rate \"one by one\" post_list=1: "));
  EXPECT_THAT(sweep.output(), testing::HasSubstr("send_rate post_list=16: "));
}

TEST(Run, ATruncatedLineLosesOnePointOnly) {
  SweepRun sweep(R"({"size": [1, 4, 5]})");
  EXPECT_EQ(sweep.run(), 0);
  const std::string text = read_text(sweep.options.out);
  write_text(sweep.options.out, text.substr(0, text.size() - 40));
  sweep.options.resume = true;
  EXPECT_EQ(sweep.run(), 0);
  EXPECT_EQ(sweep.processes_started(), 4u);
  EXPECT_EQ(sweep.records().size(), 3u);
  EXPECT_EQ(read_results(sweep.options.out).warnings.size(), 1u);
}

TEST(Run, InterruptKeepsFinishedPoints) {
  SweepRun sweep(R"({"size": [1, 3, 4]})");
  std::string errors;
  EXPECT_EQ(sweep.run_heard(errors), kExitInterrupted);
  ASSERT_EQ(sweep.records().size(), 1u);
  EXPECT_THAT(errors, testing::HasSubstr("interrupted: finished points are in "));
  sweep.repair();
  sweep.options.resume = true;
  EXPECT_EQ(sweep.run(), 0);
  EXPECT_EQ(sweep.records().size(), 3u);
}

TEST(Run, CommandLineOverridesTheSweep) {
  SweepRun sweep(R"({"size": [1, 4]})");
  sweep.options.seed = 7;
  sweep.options.repetitions = 2;
  sweep.options.set = {"size=9", "post-list=3"};
  EXPECT_EQ(sweep.run(), 0);
  ASSERT_EQ(sweep.records().size(), 2u);
  EXPECT_EQ(
      sweep.records()[1].config.at("point"),
      Json::parse(
          R"({"benchmark":"send_rate","params":{"post_list":3,"size":9},"repetition":1,"seed":8,"fabric":"null"})"));
}

TEST(Run, RetriesAFailedPoint) {
  // Size 2 fails until it has run twice.
  SweepRun sweep(R"({"size": [1, 2]})",
                 "echo x >> $dir/runs; case \"$all\" in *--size=2*) echo x >> $dir/twos\n"
                 "[ $(wc -l < $dir/twos) -gt 2 ] || { echo broken >&2; exit 1; } ;; esac\n"
                 "cat $record > $out");
  sweep.options.retries = 1;
  EXPECT_EQ(sweep.run(), 1);
  EXPECT_EQ(sweep.records()[1].environment.at("failed_attempts"), Json::array({"exit status 1: broken"}));
  sweep.options.resume = true;
  EXPECT_EQ(sweep.run(), 0);
  ASSERT_EQ(sweep.records().size(), 3u);
  EXPECT_FALSE(sweep.records()[2].environment.contains("failed_attempts"));
  EXPECT_EQ(sweep.processes_started(), 4u);
}

TEST(Run, FailFastStopsAtTheFirstFailure) {
  SweepRun sweep(R"({"size": [1, 2, 4, 5]})");
  sweep.options.fail_fast = true;
  std::string errors;
  EXPECT_EQ(sweep.run_heard(errors), 1);
  EXPECT_EQ(sweep.records().size(), 2u);
  EXPECT_THAT(errors, testing::HasSubstr("stopped at the first failure: 2 points did not run\n"));
}

TEST(Run, ParallelPointsKeepTheOrderOfRecords) {
  // Earlier points take longer.
  SweepRun sweep(R"({"size": [10, 11, 12, 13, 14, 15, 16, 17]})",
                 "case \"$all\" in *--size=1[0-3]*) sleep 0.2;; esac; cat $record > $out");
  sweep.options.jobs = 4;
  EXPECT_EQ(sweep.run(), 0);
  const auto records = sweep.records();
  ASSERT_EQ(records.size(), 8u);
  for (int i = 0; i < 8; ++i) EXPECT_EQ(records[i].config.at("point").at("params").at("size"), 10 + i);
}

TEST(Run, SharesOfListedPointsCoverTheSweep) {
  SweepRun sweep(R"({"size": [10, 11, 12, 13, 14]})");
  EXPECT_EQ(sweep.run(), 0);
  std::string keys;
  for (const Record& record : sweep.records()) {
    if (record.config.at("point").at("params").at("size") != 12) keys += point_key(record.config.at("point")) + "\n";
  }
  sweep.options.points = sweep.options.out + ".points";
  sweep.options.append = true;
  write_text(sweep.options.points, keys);
  for (const char* share : {"0/2", "1/2"}) {
    sweep.options.share = parse_share(share);
    EXPECT_EQ(sweep.run(), 0);
  }
  EXPECT_EQ(sweep.sizes(), (std::vector<int>{10, 11, 12, 13, 14, 10, 13, 11, 14}));
  for (const char* wrong : {"2/2", "1", "/", "a/b", "1/2x", "-1/2"}) {
    EXPECT_THAT(error_of([&] { parse_share(wrong); }), testing::StartsWith("--share: expected I/N")) << wrong;
  }
}

TEST(Run, RejectsAPointsFileWithoutPointsOfTheSweep) {
  SweepRun sweep(R"({"size": [10, 11]})");
  sweep.options.points = sweep.options.out + ".points";
  write_text(sweep.options.points, "{\"benchmark\":\"send_rate\"}\n");
  EXPECT_THAT(error_of([&] { sweep.run(); }),
              testing::AllOf(testing::StartsWith("--points " + sweep.options.points + ": no line is a point of "),
                             testing::EndsWith("sweep.json on null")));
}

TEST(Run, ResumesAShareWithItsOwnPoints) {
  SweepRun sweep(R"({"size": [10, 11, 12, 13, 14, 15]})");
  sweep.options.share = parse_share("0/2");
  EXPECT_EQ(sweep.run(), 0);
  const std::string text = read_text(sweep.options.out);
  write_text(sweep.options.out, text.substr(0, text.find('\n') + 1));
  sweep.options.resume = true;
  EXPECT_EQ(sweep.run(), 0);
  EXPECT_THAT(sweep.output(), testing::StartsWith("send_rate on null: 2 points, 1 more are already in "));
  EXPECT_EQ(sweep.run(), 0);
  EXPECT_EQ(sweep.sizes(), (std::vector<int>{10, 12, 14}));
}

TEST(Run, ResumeWithMoreRepetitionsRunsOnlyTheNewOnes) {
  SweepRun sweep(R"({"size": [10, 11, 12, 13, 14, 15]})");
  sweep.options.repetitions = 2;
  EXPECT_EQ(sweep.run(), 0);
  const auto two_rounds = sweep.sizes();
  sweep.options.repetitions = 4;
  sweep.options.resume = true;
  EXPECT_EQ(sweep.run(), 0);
  EXPECT_EQ(sweep.processes_started(), 24u);
  const auto sizes = sweep.sizes();
  ASSERT_EQ(sizes.size(), 24u);
  EXPECT_TRUE(std::equal(two_rounds.begin(), two_rounds.end(), sizes.begin()));
  for (std::size_t round = 0; round < sizes.size(); round += 6) {
    const auto start = sizes.begin() + static_cast<std::ptrdiff_t>(round);
    EXPECT_THAT(std::vector<int>(start, start + 6), testing::UnorderedElementsAre(10, 11, 12, 13, 14, 15));
  }
}

TEST(Run, SharesOfRepeatedPointsCoverTheSweep) {
  SweepRun sweep(R"({"size": [10, 11, 12, 13]})");
  sweep.options.repetitions = 3;
  for (const char* share : {"0/2", "1/2"}) {
    sweep.options.share = parse_share(share);
    EXPECT_EQ(sweep.run(), 0);
    EXPECT_EQ(sweep.sizes().size(), share[0] == '0' ? 6u : 12u);
  }
  std::set<std::string> keys;
  for (const Record& record : sweep.records()) keys.insert(point_key(record.config.at("point")));
  EXPECT_EQ(keys.size(), 12u);
}

TEST(Run, RecordsHowEachPointWasRun) {
  SweepRun sweep(R"({"size": [1]})");
  EXPECT_EQ(sweep.run(), 0);
  const Json environment = sweep.records()[0].environment;
  const Json& harness = environment.at("harness");
  EXPECT_EQ(harness.at("launcher"), "local");
  EXPECT_FALSE(harness.at("command_line").empty());
  EXPECT_EQ(harness.at("sweep"), sweep.options.sweep);
  EXPECT_EQ(harness.at("place"), 0);
  EXPECT_THAT(harness.at("started").get<std::string>(),
              testing::MatchesRegex("[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}[+-][0-9]{2}:[0-9]{2}"));
  EXPECT_TRUE(environment.at("hosts").at("localhost").contains("clock_source"));
}

TEST(Run, AnEarlyErrorStartsNothing) {
  SweepRun sweep(R"({"size": [1]})");
  sweep.options.set = {"sise=9"};
  EXPECT_THAT(error_of([&] { sweep.run(); }), testing::StartsWith("--set: send_rate has no option \"sise\""));
  sweep.options.set = {"size"};
  EXPECT_EQ(error_of([&] { sweep.run(); }), R"(--set: expected key=value, got "size")");
  sweep.options.set = {};
  sweep.options.seed = 1001;
  EXPECT_THAT(error_of([&] { sweep.run(); }), testing::HasSubstr("seed 1001, repetitions 1: "));
  sweep.options.seed = {};
  sweep.options.out = "/proc/nothing/results.jsonl";
  EXPECT_THAT(error_of([&] { sweep.run(); }), testing::HasSubstr("/proc/nothing/results.jsonl"));
  sweep.options.sweep = "no-such-sweep";
  EXPECT_THAT(error_of([&] { sweep.run(); }), testing::HasSubstr("no-such-sweep"));
  EXPECT_EQ(sweep.processes_started(), 0u);
}

TEST(Run, ReportsAMissingTargetBeforeTheSweepsFabrics) {
  SweepRun sweep(R"({"size": [1]}, "fabrics": ["sim:cib"])");
  sweep.options.hosts = "sim:nope";
  EXPECT_THAT(error_of([&] { sweep.run(); }),
              testing::HasSubstr("unknown cluster \"nope\"; known: " + shipped_clusters()));
  sweep.options.hosts = "nowhere.txt";
  EXPECT_THAT(error_of([&] { sweep.run(); }), testing::HasSubstr("got \"nowhere.txt\", which is not a file"));
}

TEST(Run, NamesAnUnknownBenchmark) {
  SweepRun sweep(R"({"size": [1]})");
  write_text(sweep.options.sweep, R"({"schema": "verbscope.sweep/1", "benchmark": "../../bin/sh"})");
  EXPECT_THAT(error_of([&] { sweep.run(); }),
              testing::HasSubstr("sweep.json: \"benchmark\": unknown benchmark \"../../bin/sh\"; known are send_rate"));
}

}  // namespace
}  // namespace verbscope
