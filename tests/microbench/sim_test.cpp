// send_rate and recv_rate on simulated clusters: every message arrives intact, the counts agree, and a seed gives one
// record.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/error.hpp"
#include "common/record.hpp"
#include "microbench/run/sim_fabric.hpp"
#include "tests/common/temp_dir.hpp"
#include "tests/microbench/changed_cluster.hpp"
#include "tests/microbench/run_program.hpp"
#include "tests/microbench/test_benchmarks.hpp"

namespace verbscope {
namespace {

using test::OptionSet;
using test::SendBenchmark;
using testing::HasSubstr;

Outcome simulate(bool server_sends, const std::string& line, const std::string& duration = "100us") {
  SendBenchmark benchmark(server_sends);
  const OptionSet set("--fabric sim:cib --warmup 50us -D " + duration + " " + line);
  return SimFabric(benchmark, set.options).run();
}

struct Shape {
  bool server_sends;
  std::string line;
  friend std::ostream& operator<<(std::ostream& out, const Shape& shape) {
    return out << (shape.server_sends ? "send " : "receive ") << shape.line;
  }
};

class ValidatedTest : public testing::TestWithParam<Shape> {};

TEST_P(ValidatedTest, DeliversEveryMessageIntact) {
  const Outcome outcome = simulate(GetParam().server_sends, GetParam().line + " --validate");
  EXPECT_EQ(outcome.failure, "");
  EXPECT_GT(outcome.result.at("rate_mops").get<double>(), 0.1);
  EXPECT_GT(outcome.result.at("messages_received").get<std::uint64_t>(), 100u);
  EXPECT_EQ(outcome.result.at("lost"), 0);
  EXPECT_EQ(outcome.result.at("validation").at("wrong"), 0);
  EXPECT_EQ(outcome.result.at("validation").at("checked"), outcome.result.at("messages_received"));
}

INSTANTIATE_TEST_SUITE_P(, ValidatedTest,
                         testing::Values(Shape{true, "-c RC -s 32"}, Shape{true, "-c UC -s 32 -I 32"},
                                         Shape{true, "-c UD -s 60 -I 60 -l 16"}, Shape{true, "-c RC -s 0"},
                                         Shape{true, "-c RC -s 9000 -q 2"}, Shape{true, "-c UC -s 4096 -q 4"},
                                         Shape{true, "-c UD --header_only -l 8 --threads 2 -q 2"},
                                         Shape{true, "-c RC --header_only"}, Shape{true, "-c UD -s 4096 --clients 3"},
                                         Shape{true, "-c RC -s 8 -q 6 --clients 3 -l 4 -Q 2"},
                                         Shape{true, "-c UD -s 1 -i 2"},
                                         Shape{false, "-c RC -s 32 -q 2 --client_threads 2"}));

TEST(SimRun, CountsOnEveryNodeInTheInterval) {
  const Outcome outcome = simulate(true, "-c UD -s 60 -I 60 --clients 2", "1ms");
  ASSERT_EQ(outcome.counters.size(), 3u);
  EXPECT_EQ(outcome.counters[0].node, "server");
  EXPECT_EQ(outcome.counters[2].node, "client1");
  EXPECT_DOUBLE_EQ(outcome.counters[0].window_s, 1e-3);
  // A 60-byte inline UD SEND is a WQE of two lines, which a lone post writes to the adapter itself.
  const double ops = outcome.result.at("window_ops");
  EXPECT_NEAR(static_cast<double>(outcome.counters[0].events.mmio_wc_lines) / ops, 2, 0.02);
  EXPECT_NEAR(outcome.counters[0].extra.at("messages_sent").get<double>() / ops, 1, 0.01);
}

TEST(SimRun, MeasuresExactlyTheItersOfEachQp) {
  SendBenchmark benchmark(true);
  const OptionSet set("--fabric sim:cib --warmup 50us -c UD -s 8 -q 2 --threads 3 -n 640");
  const Outcome outcome = SimFabric(benchmark, set.options).run();
  EXPECT_EQ(outcome.failure, "");
  EXPECT_EQ(outcome.result.at("ops"), 640 * 2 * 3);
  EXPECT_EQ(outcome.result.at("window_ops"), 640 * 2 * 3);
  // All of them over the time that they took together, which is no shorter than that of any thread.
  double longest_s = 0;
  for (const Json& thread : outcome.result.at("threads")) {
    longest_s = std::max(longest_s, thread.at("window_s").get<double>());
  }
  EXPECT_LE(outcome.result.at("rate_mops").get<double>() * 1e6 * longest_s, 640 * 2 * 3 * (1 + 1e-9));
}

// An interval of few operations: its rate is near that of 1 ms, or the point fails.
TEST(SimRun, RateOfFewItersIsRightOrFails) {
  SendBenchmark benchmark(true);
  const auto run = [&benchmark](const std::string& line) {
    const OptionSet set("--fabric sim:cib -s 32 -I 32 " + line);
    return SimFabric(benchmark, set.options).run();
  };
  int right = 0, refused = 0;
  for (const std::string qps : {"-q 1", "-q 4 --clients 4", "-q 16 --clients 4", "-q 2 --threads 3", "-c UD -q 4"}) {
    const double true_rate = run(qps).result.at("rate_mops");
    for (const char* iters : {"2", "10", "100", "1000", "10000"}) {
      const Outcome outcome = run(qps + " -n " + iters);
      if (!outcome.failure.empty()) {
        EXPECT_THAT(outcome.failure, HasSubstr("too few --iters")) << qps << " " << iters;
        ++refused;
        continue;
      }
      ++right;
      EXPECT_NEAR(outcome.result.at("rate_mops").get<double>() / true_rate, 1, 0.3) << qps << " " << iters;
      // The rate is the operations per time of the interval in the record.
      EXPECT_NEAR(outcome.result.at("ops").get<double>() / outcome.result.at("window_s").get<double>() * 1e-6,
                  outcome.result.at("rate_mops").get<double>(), 1e-9 * true_rate);
    }
    EXPECT_EQ(run(qps + " -n 10000").failure, "") << qps;
  }
  EXPECT_GT(right, 10);
  EXPECT_GT(refused, 0);
}

TEST(SimRun, RecordHasTheThreadsOfTheClients) {
  SendBenchmark benchmark(true);
  const auto threads = [&benchmark](const std::string& line) {
    const OptionSet set("--fabric sim:cib -D 50us --warmup 20us --client_threads 8 " + line);
    return SimFabric(benchmark, set.options).run().config.at("client_threads").get<int>();
  };
  EXPECT_EQ(threads("-q 3 --clients 1"), 3);
  EXPECT_EQ(threads("-q 3 --clients 2"), 2);
  EXPECT_EQ(threads("-q 16 --clients 1"), 8);
  EXPECT_EQ(threads("-q 3 --clients 2 -c UD"), 3);
}

// Receivers have one translation miss per page of their RECV buffers, one in 32 datagrams. Their units are not busy, so
// the misses do not lower the rate, and no further interval follows.
TEST(SimRun, PointEndsIfMissesDoNotLowerTheRate) {
  const std::string line = "send_rate --fabric sim:cib -c UD -s 60 -I 60 -l 16 --threads 8 -q 4 --warmup 100us -D ";
  const Json brief = test::result_of(line + "150us"), lasting = test::result_of(line + "2ms");
  EXPECT_EQ(brief.at("steadiness").at("windows"), 1);
  EXPECT_NEAR(brief.at("rate_mops").get<double>() / lasting.at("rate_mops").get<double>(), 1, 0.002);
}

// The units of an overloaded receiver are busy, so misses lower the rate until the first laps are over.
TEST(SimRun, PointContinuesWhileMissesLowerTheRate) {
  const Json result =
      test::result_of("recv_rate --fabric sim:cib -c UD -s 32 -I 32 -l 16 --threads 8 -q 4 --warmup 0 -D 50us");
  EXPECT_GT(result.at("steadiness").at("windows"), 1);
}

TEST(SimRun, PredictsFromTheProfile) {
  const Outcome outcome = simulate(true, "-c UD -s 60 -I 60 -l 16");
  ASSERT_TRUE(outcome.prediction.is_object()) << outcome.no_prediction;
  EXPECT_EQ(outcome.no_prediction, "");
}

TEST(SimRun, CountsTheLossOfAnOverrunReceiver) {
  // Four machines send datagrams to a queue of one RECV, which the thread posts again after each message.
  const Outcome outcome = simulate(false, "-c UD -s 32 -r 1 --clients 4");
  EXPECT_EQ(outcome.failure, "");
  const auto expected = outcome.result.at("messages_expected").get<std::uint64_t>();
  const auto received = outcome.result.at("messages_received").get<std::uint64_t>();
  EXPECT_GT(expected, received);
  EXPECT_EQ(outcome.result.at("lost"), expected - received);
}

TEST(SimRun, RefusesMoreThanTheClusterHas) {
  const auto refusal = [](const std::string& line) { return message_of<Error>([&line] { simulate(true, line); }); };
  EXPECT_THAT(refusal("--threads 15"), HasSubstr("--threads 15 is more than the 14 cores"));
  EXPECT_THAT(refusal("-c UD -s 4097"), HasSubstr("--size 4097 is over the MTU of 4096"));
  EXPECT_THAT(refusal("-I 513"), HasSubstr("512"));
  EXPECT_THAT(refusal("-i 3"), HasSubstr("3"));
}

TEST(SimProgram, ValidationFailsIfNothingArrives) {
  const TempDir folder;
  const std::string cluster = test::changed_cluster(folder, {{"/fabric/loss_probability", 1}});
  const test::Ran ran = test::run_program("send_rate -c UD --validate --warmup 20us -D 50us --fabric " + cluster);
  EXPECT_EQ(ran.exit_code, 1) << ran.out;  // losing datagrams is no failure, but none was looked at
  EXPECT_THAT(ran.err, HasSubstr("nothing arrived that could be checked"));
}

TEST(SimProgram, SameSeedGivesTheSameRecord) {
  const std::string line =
      " --fabric sim:cib -c UD -s 60 -I 60 -l 4 --threads 2 --warmup 20us -D 50us --out_json_file -";
  const auto record = [&](const std::string& seed) {
    Json json = parse_json_text(test::run_program("send_rate --seed " + seed + line).out, "output");
    json.erase("environment");
    return dump_json(json);
  };
  EXPECT_EQ(record("7"), record("7"));
  EXPECT_NE(record("7"), record("8"));
}

TEST(SimProgram, LabelsSimulatedFigures) {
  const test::Ran ran = test::run_program("send_rate --fabric sim:cib -c UD --warmup 20us -D 50us");
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("simulated Mops"));
  EXPECT_EQ(ran.err, "");
}

}  // namespace
}  // namespace verbscope
