// Command lines of the real programs: case of words, units of bytes, suggestions, help.
#include <sstream>

#include "harness/sweep/benchmarks.hpp"
#include "tests/harness/program.hpp"

namespace verbscope {
namespace {

TEST(CommandLine, ListOfABenchmarkShowsItsOptions) {
  const std::string out = run({"list", "send_rate"}).out;
  EXPECT_THAT(out, testing::HasSubstr("\nThe operation:\n"));
  EXPECT_THAT(out, testing::ContainsRegex(
                       "\n  post_list N +work requests in one ibv_post_send \\[1 to 1048576;\n +default 1\\]"));
  EXPECT_THAT(out, testing::Not(testing::HasSubstr("out_json_file")));  // the harness sets it
  const Ran wrong = run({"list", "sendrate"});
  EXPECT_EQ(wrong.end, "exit status 2");
  EXPECT_THAT(wrong.err,
              testing::AllOf(testing::HasSubstr("\"sendrate\""), testing::HasSubstr("did you mean send_rate?")));
}

TEST(CommandLine, SuggestsTheNearestWord) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases{
      {{"comapre"}, "verbscope: unknown command \"comapre\"; did you mean compare?"},
      {{"diff", "a", "b", "--treshold", "4"}, "--treshold; did you mean --threshold?"},
      {{"compare", "a", "--format", "jsn"},
       "verbscope: --format: expected text, json or csv, got \"jsn\"; did you mean json?"},
      {{"predict", "--cluster", "cibb"}, "did you mean cib?"},
      {{"run", "quickstrat", "--hosts", "null"}, "did you mean quickstart?"},
      {{"run", "quickstart", "--hosts", "sim:cib", "--set", "pots_list=4"}, "did you mean post_list?"},
      {{"run", "quickstart", "--hosts", "sim:cib", "--set", "connection=UT"}, "did you mean UC?"}};
  for (const auto& [arguments, part] : cases) {
    const Ran ran = run(arguments);
    EXPECT_EQ(ran.end, "exit status 2") << part;
    EXPECT_THAT(ran.err, testing::HasSubstr(part));
  }
}

TEST(CommandLine, RejectsTwoFormatsAtOnce) {
  for (const char* command : {"compare", "diff", "explain"}) {
    const Ran ran = run({command, "a.jsonl", "--format", "text", "--json"});
    EXPECT_EQ(ran.end, "exit status 2") << command;
    EXPECT_THAT(ran.err, testing::AllOf(testing::HasSubstr("--json"), testing::HasSubstr("--format")));
  }
}

TEST(CommandLine, LinearizableJudgesTheFilesOfSeveralClients) {
  TempFolder folder;
  const auto event = [&](const std::string& name, const char* kind, int value, int invoked) {
    const std::string path = folder.file(name);
    std::ofstream(path) << fmt::format(
        R"({{"client":{},"operation":1,"kind":"{}","key":4,"value":{},"invoked_ns":{},"completed_ns":{}}})"
        "\n",
        invoked, kind, value, invoked, invoked + 5);
    return path;
  };
  const std::string first = event("a", "put", 1, 10), second = event("b", "put", 2, 20), old = event("c", "get", 1, 30);
  const Ran good = run({"linearizable", first, old});
  EXPECT_EQ(good.end, "exit status 0");
  EXPECT_EQ(good.out, "2 clients, 1 keys, 1 GETs, 1 PUTs, 0 without an answer: linearizable\n");
  const Ran bad = run({"linearizable", first, second, old});
  EXPECT_EQ(bad.end, "exit status 1");
  EXPECT_THAT(bad.out,
              testing::AllOf(testing::StartsWith("key 4: acknowledged PUT lost: PUT 1 of client 20 (value 2, "),
                             testing::HasSubstr("not linearizable: 1 of 1 keys\n")));
  EXPECT_THAT(run({"linearizable", folder.file("none")}).err, testing::HasSubstr("cannot read a history from "));
}

TEST(CommandLine, PredictAcceptsUnitsAndAnyCase) {
  const auto predict = [](const std::string& verb, const std::string& connection, const std::string& size) {
    return run({"predict", "--cluster", "cib", "--json", "--verb", verb, "-c", connection, "-s", size}).out;
  };
  const std::string plain = predict("read", "RC", "4096");
  EXPECT_THAT(plain, testing::HasSubstr("bound_mops"));
  EXPECT_EQ(predict("READ", "rc", "4k"), plain);
}

// A sweep and --set accept 4k and ud: the record, and so the identity of the point, contains 4096 and
// UD.
TEST(CommandLine, NormalizesValuesOfASweep) {
  TempFolder folder;
  const std::string sweep = folder.file("sweep.json");
  write_text(sweep, R"({"schema": "verbscope.sweep/1", "benchmark": "send_rate",
                        "fixed": {"duration": "50us", "size": "1k", "connection": "ud"}})");
  const std::string results = folder.file("r.jsonl");
  ASSERT_EQ(run({"run", sweep, "--hosts", "sim:cib", "--out", results, "--set", "inline_size=0k"}).end,
            "exit status 0");
  const std::string record = read_text(results);
  EXPECT_THAT(record, testing::HasSubstr("\"size\":1024"));
  EXPECT_THAT(record, testing::HasSubstr("\"connection\":\"UD\""));
  EXPECT_THAT(record, testing::Not(testing::HasSubstr("\"1k\"")));
  write_text(sweep, read_text(sweep).replace(read_text(sweep).find("\"1k\""), 4, "1024"));
  const Ran again = run({"run", sweep, "--hosts", "sim:cib", "--out", results, "--set", "inline_size=0", "--resume"});
  EXPECT_EQ(again.end, "exit status 0");
  EXPECT_EQ(read_text(results), record);  // no point was left to run
}

// Every benchmark and command shows an example; the examples of benchmarks are run unchanged.
TEST(CommandLine, HelpHasExamplesThatRun) {
  for (const std::string& name : benchmark_names()) {
    const BenchmarkSpec spec = describe_benchmark(VERBSCOPE_BINARY_DIR "/bin/" + name);
    EXPECT_NE(spec.summary, "") << name;
    EXPECT_NE(spec.example, "") << name;
    if (name == "perftest" && !simulates_perftest()) continue;
    std::string line = spec.example_line();
    if (line.find("--iters") == std::string::npos) line += " --duration 100us";
    EXPECT_EQ(std::system((VERBSCOPE_BINARY_DIR "/bin/" + line + " >/dev/null").c_str()), 0) << line;
  }
  std::istringstream commands(run({"--help"}).out);
  int seen = 0;
  for (std::string line; std::getline(commands, line) && line != "Help:";) {
    if (!line.starts_with("  ") || line.starts_with("   ")) continue;
    const std::string name = line.substr(2, line.find(' ', 2) - 2);
    if (name == "hold") continue;  // not for users
    EXPECT_THAT(run({name, "--help"}).out, testing::ContainsRegex("\nExamples?:\n  verbscope " + name)) << name;
    ++seen;
  }
  EXPECT_GE(seen, 16);
}

}  // namespace
}  // namespace verbscope
