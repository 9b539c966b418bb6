// WRITEs and READs on simulated clusters, whole: every byte arrives, what the threads count is what the adapters count.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/error.hpp"
#include "microbench/run/sim_fabric.hpp"
#include "tests/common/temp_dir.hpp"
#include "tests/microbench/test_benchmarks.hpp"

namespace verbscope {
namespace {

using test::OneSidedBenchmark;
using test::OptionSet;
using testing::HasSubstr;

Outcome simulate(const std::string& line) {
  OneSidedBenchmark benchmark;
  const OptionSet set("--fabric sim:cib --warmup 50us -D 100us " + line, &benchmark);
  return SimFabric(benchmark, set.options).run();
}

// As many operations as the line says, instead of a time.
Outcome simulate_for(const std::string& line) {
  OneSidedBenchmark benchmark;
  const OptionSet set("--fabric sim:cib --warmup 50us " + line, &benchmark);
  return SimFabric(benchmark, set.options).run();
}

class OneSidedTest : public testing::TestWithParam<std::string> {};

TEST_P(OneSidedTest, MovesEveryByteIntact) {
  const Outcome outcome = simulate(GetParam() + " --validate");
  EXPECT_EQ(outcome.failure, "");
  EXPECT_GT(outcome.result.at("rate_mops").get<double>(), 0.1);
  EXPECT_GT(outcome.result.at("validation").at("checked").get<std::uint64_t>(), 10u);
  EXPECT_EQ(outcome.result.at("validation").at("wrong"), 0);
}

INSTANTIATE_TEST_SUITE_P(
    , OneSidedTest,
    testing::Values("--verb write -s 32", "--verb write -c UC -s 28 -I 28 -l 16", "--verb write -s 9000 -q 2",
                    "--verb write --direction in -q 4 --clients 2 --addresses random", "--verb write --wr_api -l 4",
                    "--verb read -s 8", "--verb read -s 5000 -q 2 --window 4", "--verb read -l 8 -Q 4 -q 3",
                    "--verb read --direction in -q 4 --clients 2 --addresses random --region_size 1000000",
                    "--verb read --wr_api -q 2 --order random", "--verb read -e --window 4",
                    "--verb read --pages 2m --region_size 4000000 --addresses random",
                    "--verb read -s 32 --inline_recv 32 -Q 1", "--verb write -i 2 --threads 2",
                    "--verb read --wait oldest --window 8 -q 3 --order random --cq_per_qp",
                    "--verb read --wait all --window 12 -l 4 -Q 4", "--verb read --wait oldest --window 6 -e -q 2",
                    "--verb read --wait all --window 16 --direction in -q 4 --clients 2 --wr_api",
                    "--verb write --wait oldest --window 8 -q 2 -c UC", "--verb write --wait all --window 5 -s 3000"));

double per_op(const Outcome& outcome, const char* count, std::size_t node) {
  return outcome.counters.at(node).extra.at(count).get<double>() / outcome.result.at("window_ops").get<double>();
}

TEST(OneSided, RateIsThatOfTheTargetsAdapter) {
  EXPECT_NEAR(per_op(simulate("--verb write"), "writes_received", 1), 1, 0.02);
  EXPECT_NEAR(per_op(simulate("--verb read"), "reads_served", 1), 1, 0.02);
  EXPECT_NEAR(per_op(simulate("--verb write --direction in -q 4 --clients 2"), "writes_received", 0), 1, 0.02);
  EXPECT_NEAR(per_op(simulate("--verb read --direction in -q 4 --clients 2"), "reads_served", 0), 1, 0.02);
}

TEST(OneSided, TargetServerUsesNoCpu) {
  const Outcome outcome = simulate("--verb write --direction in -q 2");
  EXPECT_LT(outcome.result.at("cpu").at("cores").get<double>(), 0.05);
  EXPECT_GT(outcome.result.at("clients")[0].at("result").at("cpu").at("cores").get<double>(), 0.5);
}

TEST(OneSided, ClientsMeasureExactlyTheirIters) {
  OneSidedBenchmark benchmark;
  const OptionSet set("--fabric sim:cib --warmup 50us --direction in -q 6 --clients 3 -n 640", &benchmark);
  const Outcome outcome = SimFabric(benchmark, set.options).run();
  EXPECT_EQ(outcome.failure, "");
  EXPECT_EQ(outcome.result.at("ops"), 640 * 6);
}

TEST(OneSided, WindowLimitsOutstandingOperations) {
  // One operation outstanding: the rate is one per round trip, and four take four times as many.
  const double one = simulate("--verb read --window 1 -Q 1").result.at("rate_mops");
  const double four = simulate("--verb read --window 4 -Q 1").result.at("rate_mops");
  EXPECT_NEAR(four / one, 4, 0.2);
}

double rate_of(const std::string& line) {
  return simulate(line).result.at("rate_mops");
}

TEST(ThreadWindow, LimitsAllQpsTogether) {
  // Each READ takes as long as on an idle link, and four QPs have as many outstanding READs as one. The rate is a
  // little higher, because READs of one QP complete in order, so that a slow one delays those behind it.
  const double one = rate_of("--verb read --wait oldest --window 4");
  EXPECT_NEAR(rate_of("--verb read --wait oldest --window 4 -q 4") / one, 1.03, 0.05);
  EXPECT_NEAR(rate_of("--verb read --wait oldest --window 8 -q 4") / one, 2, 0.1);
}

TEST(ThreadWindow, WaitAllIsIdleBetweenBatches) {
  // A batch is over when its last READ is back, and no earlier than one that is posted alone.
  const double alone = rate_of("--verb read --wait all --window 1");
  const double batches = rate_of("--verb read --wait all --window 8");
  EXPECT_LT(batches, 0.9 * rate_of("--verb read --wait oldest --window 8"));
  EXPECT_LT(batches, 8 * alone);
  EXPECT_GT(batches, 2 * alone);
}

TEST(ThreadWindow, ReadsSeenInMemoryNeedNoCompletion) {
  const Outcome seen =
      simulate("--verb read --wait oldest --window 8 --seen_by memory -Q 32 -q 4 --clients 1 --order random");
  EXPECT_EQ(seen.failure, "");
  EXPECT_NEAR(per_op(seen, "reads_served", 1), 1, 0.02);
  const double ops = seen.result.at("window_ops");
  const double bytes = static_cast<double>(seen.counters.at(0).events.payload_bytes_to_host) / ops;
  EXPECT_NEAR(bytes, 64 + 64.0 / 32, 1);  // what it brings, and its share of a completion
}

TEST(ThreadWindow, AReadIsSeenInMemoryNoEarlierThanItsBytesAreWritten) {
  // One at a time: without its completion a READ is back sooner, by what the completion takes, a tenth at most.
  const double by_completion = rate_of("--verb read --wait oldest --window 1");
  const double by_memory = rate_of("--verb read --wait oldest --window 1 --seen_by memory -Q 32");
  EXPECT_GT(by_memory, by_completion);
  EXPECT_LT(by_memory, 1.1 * by_completion);
}

TEST(ThreadWindow, MeasuresExactlyTheGoal) {
  for (const char* line : {"--wait oldest --window 7 -q 3 --order random", "--wait all --window 5",
                           "--wait oldest --window 8 --seen_by memory -Q 4 -q 2"}) {
    const Outcome outcome = simulate_for(line + std::string(" --verb read -n 400"));
    EXPECT_EQ(outcome.failure, "") << line;
    const int qps = outcome.config.at("qp");
    EXPECT_EQ(outcome.result.at("ops"), 400 * qps) << line;
  }
}

TEST(ThreadWindow, PlacesMayOverlap) {
  // 64 bytes have 33 places of 32 bytes at every byte: they cross cache lines, so that a READ costs its server more.
  const Outcome outcome =
      simulate("--verb read -s 32 --wait oldest --window 8 --addresses random --alignment 1 --region_size 64");
  EXPECT_EQ(outcome.failure, "");
  EXPECT_GT(outcome.result.at("rate_mops").get<double>(), 1);
}

TEST(OneSided, BothSidesCanPost) {
  const Outcome outcome = simulate("--verb write --everybody -q 2");
  EXPECT_EQ(outcome.failure, "");
  EXPECT_GT(per_op(outcome, "writes_received", 0), 0.1);
  EXPECT_TRUE(outcome.prediction.is_null());
  EXPECT_THAT(outcome.no_prediction, HasSubstr("one side"));
}

TEST(OneSided, RefusesAValidationThatWouldCheckNothing) {
  const auto refusal = [](const std::string& line) {
    return message_of<UsageError>([&line] { simulate(line + " --validate"); });
  };
  EXPECT_THAT(refusal("--verb write -s 0"), HasSubstr("a WRITE of 0 bytes"));
  EXPECT_THAT(refusal("--verb read -s 0"), HasSubstr("a READ of 0 bytes"));
  EXPECT_THAT(refusal("--verb write --everybody"), HasSubstr("all machines post WRITEs"));
  EXPECT_NO_THROW(simulate("--verb read --everybody --validate"));  // READs are checked where they are posted
}

TEST(OneSided, OnlySmallPagesMissTheTranslationCache) {
  // 97,656 pages of 4 KB, for which cib's cache has 65,536 places. While it fills it misses more.
  const std::string line = "--verb read --addresses random --region_size 400000000";
  const Outcome small = simulate(line), large = simulate(line + " --pages 2m");
  EXPECT_GT(per_op(small, "translation_misses", 1), 1 - 65536 / 97656.25);
  EXPECT_LT(per_op(large, "translation_misses", 1), 0.05);
  EXPECT_LT(small.result.at("rate_mops").get<double>(), large.result.at("rate_mops").get<double>());
}

}  // namespace
}  // namespace verbscope
