// The real programs together: verbscope, the benchmarks, the simulated clusters and the shipped
// configuration.
#include <cmath>
#include <csignal>
#include <set>

#include "common/paths.hpp"
#include "harness/point/run_sweep.hpp"
#include "harness/sweep/load_sweep.hpp"
#include "tests/harness/program.hpp"

namespace verbscope {
namespace {

std::string sweep_file(const TempFolder& folder, const std::string& rest) {
  const std::string path = folder.file("sweep.json");
  write_text(path, R"({"schema": "verbscope.sweep/1", "benchmark": "send_rate", )" + rest + "}");
  return path;
}

// Records without the parts that differ between runs: wall-clock times and host.
std::vector<std::string> timeless(const std::string& path) {
  std::vector<std::string> out;
  for (Record& record : read_results(path).records) {
    record.environment = Json{{"fabric", record.environment.at("fabric")}, {"simulated", true}};
    out.push_back(dump_json(to_json(record)));
  }
  return out;
}

TEST(EndToEnd, QuickstartMatchesPublishedRatesAndModel) {
  TempFolder folder;
  const std::string results = folder.file("results.jsonl");
  const auto start = std::chrono::steady_clock::now();
  for (const char* hosts : {"sim:cib", "sim:cx3"}) {
    const Ran ran = run({"run", "quickstart", "--hosts", hosts, "--out", results});
    ASSERT_EQ(ran.end, "exit status 0") << ran.out << ran.err;
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
  const Json rows = Json::parse(run({"compare", results, "--json"}).out);
  ASSERT_EQ(rows.size(), 5u);
  const std::vector<double> published{80, 101.6, 157, 26, 32.1};  // Tables 4 and 5 of Kalia et al., ATC 2016
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Json& row = rows[i];
    ASSERT_TRUE(row.contains("published")) << row;
    EXPECT_EQ(row.at("published").at("value"), published[i]);
    EXPECT_NEAR(row.at("rate_mops").get<double>(), published[i], published[i] * 0.03);
    EXPECT_LE(row.at("rate_mops").get<double>(), row.at("bound_mops").get<double>());
    for (const auto& [name, pair] : row.at("events_per_op").items()) {
      EXPECT_NEAR(pair.at("difference_percent").get<double>(), 0, 1) << name << " of row " << i;
    }
  }
  const std::string table = run({"compare", results}).out;
  EXPECT_THAT(table, testing::AllOf(testing::HasSubstr("sim:cib (SIMULATED)"), testing::HasSubstr("calibrated")));
  std::istringstream lines(table);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 170u) << line;
}

TEST(EndToEnd, SimulatesAPointWithOneThreadByDefault) {
  TempFolder folder;
  for (const auto& [extra, passed] :
       {std::pair{"", "--sim_threads=1"}, std::pair{R"(, "sim_threads": 2)", "--sim_threads=2"}}) {
    const std::string sweep =
        sweep_file(folder, R"("fixed": {"size": 32, "duration": "50us")" + std::string(extra) + "}");
    const std::string results = folder.file(std::string("results") + passed);
    ASSERT_EQ(run({"run", sweep, "--hosts", "sim:cib", "--out", results}).end, "exit status 0");
    const Json command = read_results(results).records.at(0).environment.at("command_line");
    EXPECT_EQ(std::ranges::count_if(
                  command, [](const Json& word) { return word.get<std::string>().starts_with("--sim_threads"); }),
              1);
    EXPECT_EQ(std::ranges::count(command, Json(passed)), 1);
  }
}

TEST(EndToEnd, EqualSeedsGiveEqualRecords) {
  TempFolder folder;
  const std::string sweep =
      sweep_file(folder, R"("fixed": {"connection": "UD", "size": 32, "inline_size": 32, "duration": "50us"})");
  for (const char* name : {"a", "b"}) {
    ASSERT_EQ(run({"run", sweep, "--hosts", "sim:cib", "--out", folder.file(name), "--seed", "9"}).end,
              "exit status 0");
  }
  EXPECT_EQ(timeless(folder.file("a")), timeless(folder.file("b")));
}

TEST(EndToEnd, RecordsTheReasonOfAFailedPoint) {
  TempFolder folder;
  const std::string sweep =
      sweep_file(folder, R"("fixed": {"connection": "UD", "duration": "50us"}, "vary": {"size": [64, 100000]})");
  const Ran ran = run({"run", sweep, "--hosts", "sim:cib", "--out", folder.file("results")});
  EXPECT_EQ(ran.end, "exit status 1");
  const auto records = read_results(folder.file("results")).records;
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0].status, RecordStatus::ok);
  EXPECT_EQ(records[1].status, RecordStatus::failed);
  EXPECT_THAT(records[1].reason, testing::HasSubstr("100000"));
  EXPECT_THAT(run({"compare", folder.file("results")}).out, testing::HasSubstr("FAILED: "));
}

TEST(EndToEnd, ResumeRunsOnlyMissingPoints) {
  TempFolder folder;
  const std::string sweep = sweep_file(folder, R"("fixed": {"duration": "50us"}, "vary": {"size": [8, 16, 32]})");
  const std::vector<std::string> command{"run", sweep, "--hosts", "sim:cib", "--out", folder.file("r"), "--resume"};
  ASSERT_EQ(run(command).end, "exit status 0");
  const std::string text = read_text(folder.file("r"));
  write_text(folder.file("r"), text.substr(0, text.size() - 100));
  const Ran again = run(command);
  EXPECT_EQ(again.end, "exit status 0");
  EXPECT_THAT(again.out, testing::HasSubstr("1 points, 2 more are already in "));
  EXPECT_EQ(read_results(folder.file("r")).records.size(), 3u);
}

TEST(EndToEnd, RunsASweepOnTheNullDevice) {
  TempFolder folder;
  const std::string sweep = sweep_file(folder, R"("fixed": {"duration": "20ms", "warmup": "1ms"})");
  const Ran ran = run({"run", sweep, "--hosts", "null", "--out", folder.file("r")});
  EXPECT_EQ(ran.end, "exit status 0") << ran.out << ran.err;
  EXPECT_THAT(run({"compare", folder.file("r")}).out, testing::Not(testing::HasSubstr("SIMULATED")));
}

TEST(EndToEnd, InterruptEndsTheBenchmarkAndKeepsTheRecords) {
  TempFolder folder;
  // The second point simulates for hours.
  const std::string sweep = sweep_file(folder, R"("points": [{"duration": "50us"}, {"duration": "1000000"}])");
  std::string out;
  Child child({kProgram, "run", sweep, "--hosts", "sim:cib", "--out", folder.file("r")},
              [&out](std::string_view chunk) { out += chunk; });
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(120);
  const auto first_done = [&out] { return out.find("[1/2]") != std::string::npos; };
  ASSERT_EQ(wait_children({&child}, deadline, nullptr, first_done), WaitEnd::satisfied);
  child.signal(SIGINT);
  ASSERT_EQ(wait_children({&child}, deadline, nullptr, [&child] { return !child.running(); }), WaitEnd::satisfied);
  EXPECT_EQ(child.end_text(), "exit status 130");
  EXPECT_EQ(read_results(folder.file("r")).records.size(), 1u);
}

TEST(EndToEnd, TheBenchmarkDiesWithVerbscope) {
  TempFolder folder;
  const std::string sweep = sweep_file(folder, R"("points": [{"duration": "1000000"}])");  // simulates for hours
  const auto child_of = [](const std::string& pid) {
    std::string child;
    for (const auto& thread : std::filesystem::directory_iterator("/proc/" + pid + "/task")) {
      if (child.empty()) std::istringstream(read_text(thread.path() / "children")) >> child;
    }
    return child;
  };
  Child child({kProgram, "run", sweep, "--hosts", "sim:cib", "--out", folder.file("r")});
  const std::string verbscope = child_of(std::to_string(getpid()));
  std::string benchmark;
  const auto running = [&] {
    benchmark = child_of(verbscope);
    return !benchmark.empty() && read_text("/proc/" + benchmark + "/cmdline").find("--duration") != std::string::npos;
  };
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!running() && std::chrono::steady_clock::now() < deadline) usleep(1000);
  ASSERT_TRUE(running());
  child.signal(SIGKILL);
  EXPECT_TRUE(is_gone_soon(std::stoi(benchmark)));
}

TEST(EndToEnd, PredictMatchesTheFiguresOfThePaper) {
  const Json json =
      Json::parse(run({"predict", "--cluster", "cib", "--wqe-bytes", "65", "--wqes", "10", "--json"}).out);
  // Kalia et al., ATC 2016, Appendix A and Section 5.2.1; the bandwidths from its PCIe figures.
  EXPECT_EQ(json.at("mmio_bytes_to_nic"), 1800);
  EXPECT_EQ(json.at("doorbell_bytes_to_nic"), 1534);
  EXPECT_EQ(std::round(json.at("dma_read_mb_per_s").get<double>()), 13443);
  EXPECT_EQ(std::round(json.at("mmio_lines_per_us").get<double>()), 175);
  EXPECT_EQ(std::round(json.at("dma_read_limit_mops").get<double>()), 105);
  EXPECT_NEAR(json.at("mmio_limit_mops").get<double>(), 87.5, 0.05);
  const std::string table = run({"predict", "--cluster", "cib", "--wqe-bytes", "65", "--wqes", "10"}).out;
  EXPECT_THAT(table, testing::HasSubstr("published: mmio_bytes_to_nic = 1800 (atc16 Appendix A), off by 0.0 %"));
  EXPECT_THAT(table, testing::HasSubstr("published: mmio_limit_mops = 87.5"));
}

// 64 bytes lie in one line, or in two from offset 4 on.
TEST(EndToEnd, PredictUsesThePayloadOffset) {
  for (const auto& [offset, lines] : {std::pair{"0", 1}, {"4", 2}, {"4032", 1}}) {
    const Ran ran = run({"predict", "--cluster", "cib", "--verb", "write", "-c", "RC", "-s", "64", "--payload_offset",
                         offset, "--responder", "--json"});
    const Json pcie = Json::parse(ran.out).at("pcie_per_op");
    EXPECT_EQ(pcie.at("dma_write_full_lines").get<double>() + pcie.at("dma_write_partial_lines").get<double>(), lines);
  }
}

TEST(EndToEnd, PredictNamesTheInvalidOption) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases{
      {{"-c", "RC", "-s", "60", "--inline_recv", "-1"}, "--inline_recv: expected bytes, 0 to 4k"},
      {{"-s", "-1"}, "--size: expected bytes, 0 to 2G"},
      {{"-s", "60", "-I", "-1"}, "--inline_size: expected bytes, 0 to 64k"},
      {{"-s", "60", "-Q", "0"}, "--cq_mod: expected a whole number, 1 to 1048576"},
      {{"-s", "60", "-t", "0"}, "--tx_depth: expected a whole number, 1 to 1048576"},
      {{"-s", "60", "-l", "200"}, "--post_list 200 is more than the send queue holds (--tx_depth 128)"},
      {{"-s", "60", "-Q", "200"}, "--cq_mod 200 is more than the send queue holds (--tx_depth 128)"},
      {{"-s", "60", "-l", "600", "--receiver"},
       "--post_list 600 is more than the receive queue holds (--rx_depth 512)"},
      {{"--wqe-bytes", "-5"}, "--wqe_bytes: expected bytes, 1 to 1k"},
      {{"--wqe-bytes", "65", "--verb", "read"}, "--wqe_bytes excludes --verb"},
      {{"--wqe-bytes", "65", "-s", "5000"}, "--wqe_bytes excludes --size"},
      {{"--wqe-bytes", "65", "--receiver"}, "--wqe_bytes excludes --receiver"},
      {{"--wqe-bytes", "65", "-l", "4"}, "--wqe_bytes excludes --post_list"}};
  for (const auto& [arguments, part] : cases) {
    std::vector<std::string> command{"predict", "--cluster", "cib"};
    command.insert(command.end(), arguments.begin(), arguments.end());
    const Ran ran = run(command);
    EXPECT_EQ(ran.end, "exit status 2") << part;
    EXPECT_THAT(ran.err, testing::StartsWith("verbscope: " + part));
  }
  // The receiver's lists use the receive queue.
  EXPECT_EQ(run({"predict", "--cluster", "cib", "-s", "60", "-l", "200", "--receiver"}).end, "exit status 0");
}

TEST(EndToEnd, ListShowsBenchmarksClustersAndSweeps) {
  const std::string out = run({"list"}).out;
  for (const char* part : {"  send_rate ", "sim:cib", "sim:cx3", "sim:cx ", "quickstart"}) {
    EXPECT_THAT(out, testing::HasSubstr(part));
  }
  EXPECT_THAT(out, testing::Not(testing::HasSubstr("post_list")));  // a line each
  EXPECT_THAT(out, testing::Not(testing::HasSubstr(".json:")));     // every sweep parses
}

TEST(EndToEnd, ListShowsOneBenchmarkClusterOrSweep) {
  EXPECT_THAT(run({"list", "send_rate"}).out, testing::HasSubstr("post_list"));
  EXPECT_THAT(run({"list", "cib"}).out,
              testing::AllOf(testing::StartsWith("sim:cib: Connect-IB"), testing::HasSubstr("pcie_lanes")));
  // 3 transports, 3 lists and 9 sizes.
  EXPECT_THAT(run({"list", "send_grid"}).out,
              testing::AllOf(testing::HasSubstr("vary"), testing::HasSubstr("post_list [1,4,16]"),
                             testing::HasSubstr("inline_size=188")));
  EXPECT_THAT(run({"list", "atc16/read_in"}).out,
              testing::AllOf(testing::HasSubstr("atc16 Fig 12"), testing::ContainsRegex("sim:cib +9 points")));
}

// Options that no device accepts are usage errors (exit code 2), reported before a device is opened. Sweeps of this
// machine alone have no points for devices.
TEST(EndToEnd, EveryShippedSweepRunsOnDevices) {
  for (const std::string& name : list_configs("sweeps")) {
    // Of a host's memory; of losses, hyper-threads and replicas that are simulated.
    if (name == "lookups" || name == "erpc19/losses" || name == "erpc19/ordered_store" || name == "erpc19/raft")
      continue;
    const Sweep sweep =
        load_sweep({.sweep = name, .seed = {}, .repetitions = {}, .set = {}, .vary = {}}, VERBSCOPE_BINARY_DIR "/bin");
    std::set<std::size_t> entries;
    for (const Point& point : expand_sweep(sweep, "verbs")) {
      EXPECT_FALSE(point.params.contains("clients")) << name;
      if (!entries.insert(point.entry).second) continue;
      std::vector<std::string> command{std::string(VERBSCOPE_BINARY_DIR "/bin/") + point.benchmark, "--ib_dev=none"};
      for (const auto& [key, value] : point.params.items()) command.push_back(option_argument(key, value));
      Child child(command);
      const auto ended = [&child] { return !child.running(); };
      ASSERT_EQ(wait_children({&child}, std::chrono::steady_clock::now() + std::chrono::seconds(60), nullptr, ended),
                WaitEnd::satisfied);
      EXPECT_EQ(child.end_text(), "exit status 1") << fmt::format("{}", fmt::join(command, " "));
      EXPECT_THAT(child.tail().back(), testing::HasSubstr("device")) << fmt::format("{}", fmt::join(command, " "));
    }
  }
}

// A sweep of inbound READs, WRITEs and SENDs without a file. Inbound SENDs are those of recv_rate: the
// same simulation, the same record.
TEST(EndToEnd, RunsReadWriteAndSendInOneInboundSweep) {
  TempFolder folder;
  const std::string results = folder.file("results");
  const Ran ran = run({"run", "read_rate,write_rate,send_rate", "--hosts", "sim:cib", "--out", results, "--set",
                       "direction=in", "--set", "duration=50us", "--vary", "size=16,64"});
  ASSERT_EQ(ran.end, "exit status 0") << ran.err;
  const std::vector<Record> records = read_results(results).records;
  ASSERT_EQ(records.size(), 6u);
  EXPECT_EQ(records[4].benchmark, "recv_rate");
  ASSERT_EQ(run({"run", "recv_rate", "--hosts", "sim:cib", "--out", results, "--set", "duration=50us", "--vary",
                 "size=16,64"})
                .end,
            "exit status 0");
  const std::vector<Record> both = read_results(results).records;
  ASSERT_EQ(both.size(), 8u);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(both[4 + i].result.at("rate_mops"), both[6 + i].result.at("rate_mops"));
    EXPECT_EQ(both[4 + i].config.at("direction"), "in");
  }
}

TEST(EndToEnd, PrintsTheReasonOfAFailedRunOnStandardError) {
  TempFolder folder;
  for (const std::vector<std::string>& rest :
       {std::vector<std::string>{"--hosts", "sim:cib", "--set", "post_list=300"}, {"--hosts", "host"}}) {
    std::vector<std::string> command{kProgram, "run", "send_rate", "--out", folder.file("results"), "--append"};
    command.insert(command.end(), rest.begin(), rest.end());
    std::string printed;
    Child child(command, [&printed](std::string_view chunk) { printed += chunk; });
    const auto ended = [&child] { return !child.running(); };
    ASSERT_EQ(wait_children({&child}, std::chrono::steady_clock::now() + std::chrono::seconds(60), nullptr, ended),
              WaitEnd::satisfied);
    EXPECT_EQ(child.end_text(), "exit status 1");
    std::string all;
    for (const std::string& line : child.tail()) all += line + "\n";
    EXPECT_THAT(all, testing::HasSubstr("verbscope: 1 of 1 points failed; the first: ")) << rest.back();
    EXPECT_THAT(printed, testing::Not(testing::HasSubstr("points failed"))) << "not on standard output";
  }
}

TEST(EndToEnd, EveryShippedSweepFitsItsBenchmarks) {
  TempFolder folder;
  int sweeps = 0;
  for (const std::string& sweep : list_configs("sweeps")) {
    const Ran ran = run({"run", sweep, "--hosts", "null", "--out", folder.file("r")});
    EXPECT_THAT(ran.err, testing::HasSubstr("no point runs on null")) << sweep;  // valid, but not for null
    ++sweeps;
  }
  EXPECT_GE(sweeps, 10);
}

TEST(EndToEnd, ReportsBadInputInOneLine) {
  TempFolder folder;
  const std::string sweep = sweep_file(folder, R"("fixed": {"duration": "50us"})");
  write_text(folder.file("bad.json"), "{\n\"schema\": 1,,\n}");
  write_text(folder.file("record"), R"({"schema": "verbscope.record/9"})"
                                    "\n");
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases{
      {{}, "expected a command"},
      {{"walk"}, "walk"},
      {{"run", sweep}, "--hosts"},
      {{"run", sweep, "--hosts", "sim:cib", "--out", ""}, "--out: expected a value"},
      {{"run", sweep, "--hosts", ""}, "--hosts: expected a value"},
      {{"run", sweep, "--hosts", "sim:cib", "--resume", "--append"}, "--append"},
      {{"run", "read_in", "--hosts", "sim:cib"}, "did you mean atc16/read_in or herd14/read_in?"},
      {{"run", "send_rat", "--hosts", "sim:cib", "--vary", "size=1,2"}, "did you mean send_rate?"},
      {{"run", "send_rate", "--hosts", "sim:cib", "--vary", "sise=1,2"}, "did you mean size?"},
      {{"list", "read_in"}, "did you mean atc16/read_in or herd14/read_in?"},
      {{"list", "cibb"}, "did you mean cib?"},
      {{"validate", ""}, "expected a value"},
      {{"run", sweep, "--hosts", "sim:cib", "--outt", "x"}, "--outt"},
      {{"run", sweep, "--hosts", "nowhere.txt"}, "nowhere.txt"},
      {{"run", sweep, "--hosts", "sim:cibb"}, "unknown cluster \"cibb\"; did you mean cib? known: "},
      {{"run", "no-such-sweep", "--hosts", "sim:cib"}, "no-such-sweep"},
      {{"run", folder.file("bad.json"), "--hosts", "sim:cib"}, "bad.json:2:"},
      {{"run", sweep, "--hosts", "sim:cib", "--out", "/proc/x/y"}, "/proc/x/y"},
      {{"run", sweep, "--hosts", "sim:cib", "--set", "size=big"}, "size"},
      {{"run", sweep, "--hosts", "sim:cib", "--timeout", "soon"}, "--timeout"},
      {{"run", sweep, "--hosts", "sim:cib", "--seed", "-1"}, "--seed: "},
      {{"compare", folder.file("nothing")}, "nothing"},
      {{"compare", folder.file("record")}, "verbscope.record/9"},
      {{"reproduce", "atc17"}, "known papers: atc16"},
      {{"reproduce", "atc16", "--rows_only", "--out", "/proc/x/y"}, "/proc/x/y"},
      {{"predict", "--cluster", "cibb", "-s", "8"}, "cibb"},
      {{"predict", "--cluster", "cib", "-s", "8", "--responder"}, "send is not one-sided"},
      {{"predict", "--cluster", "cib", "-c", "UD", "-s", "8", "--inline_recv", "32", "--receiver"},
       "no inline receive of UD send"},
      {{"predict", "--cluster", "cib", "-s", "8", "--connection", "XRC"}, "XRC"}};
  for (const auto& [arguments, part] : cases) {
    const Ran ran = run(arguments);
    EXPECT_NE(ran.end, "exit status 0") << part;
    EXPECT_THAT(ran.err, testing::AllOf(testing::StartsWith("verbscope: "), testing::HasSubstr(part)));
  }
}

}  // namespace
}  // namespace verbscope
