// The whole frame on the null device, in this process: rates, counts, and a data path that allocates nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>

#include "common/error.hpp"
#include "microbench/run/node_run.hpp"
#include "microbench/run/runner.hpp"
#include "systems/rpc_rate/echo_benchmark.hpp"
#include "tests/microbench/test_benchmarks.hpp"
#include "verbs/null/provider.hpp"

namespace {
std::atomic<bool> counting{false};
std::atomic<std::uint64_t> allocations{0};
}  // namespace

#if !defined(VERBSCOPE_ADDRESS_SANITIZER) && !defined(VERBSCOPE_THREAD_SANITIZER)
#define VERBSCOPE_COUNT_ALLOCATIONS 1
extern "C" void* __libc_malloc(std::size_t size);
// Every allocation of the process passes here: operator new, libraries, and calls from C.
extern "C" void* malloc(std::size_t size) {
  if (counting.load(std::memory_order_relaxed)) allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_malloc(size);
}
#endif

namespace verbscope {
namespace {

using test::OptionSet;
using test::SendBenchmark;
using testing::HasSubstr;

TEST(Null, SendRateReportsEveryThreadAndExactCounts) {
  SendBenchmark benchmark(true);
  const OptionSet set("--fabric null -c UD -s 60 -I 60 -l 16 -n 6400 --warmup 0");
  const Outcome outcome = run_on_fabric(benchmark, set.options, set.table);
  EXPECT_EQ(outcome.failure, "");
  EXPECT_EQ(outcome.result.at("ops"), 6400);
  EXPECT_GT(outcome.result.at("rate_mops").get<double>(), 0);
  ASSERT_EQ(outcome.result.at("threads").size(), 1u);
  EXPECT_EQ(outcome.result.at("threads")[0].at("ops"), 6400);
  EXPECT_GE(outcome.result.at("cpu").at("user_s").get<double>(), 0);
  EXPECT_TRUE(outcome.prediction.is_null());
  EXPECT_NE(outcome.no_prediction, "");
}

TEST(Null, CountsItersPerQp) {
  SendBenchmark benchmark(true);
  const OptionSet set("--fabric null -q 3 -n 640 --warmup 0");
  EXPECT_EQ(run_on_fabric(benchmark, set.options, set.table).result.at("ops"), 1920);
}

TEST(Null, RecvRateReceives) {
  SendBenchmark benchmark(false);
  const OptionSet set("--fabric null -c UD -D 5ms --warmup 1ms");
  const Outcome outcome = run_on_fabric(benchmark, set.options, set.table);
  EXPECT_EQ(outcome.failure, "");
  EXPECT_GT(outcome.result.at("ops").get<std::uint64_t>(), 0u);
}

TEST(Null, RateIsThatOfTheInterval) {
  SendBenchmark benchmark(true);
  const OptionSet set("--fabric null -D 20ms --warmup 5ms");
  const Outcome outcome = run_on_fabric(benchmark, set.options, set.table);
  const Json& result = outcome.result;
  EXPECT_GE(result.at("window_s").get<double>(), 0.02);
  const double rate = result.at("rate_mops");
  const double expected = rate * 1e6 * result.at("window_s").get<double>();
  EXPECT_NEAR(result.at("window_ops").get<double>(), expected, 1);
}

TEST(Null, WritesAndReadsCountExactly) {
  for (const char* line :
       {"--verb write -s 32 -I 32 -l 16", "--verb read -q 2 -l 4", "--verb write --wr_api -c UC",
        "--verb read --window 8 --addresses random --region_size 100000", "--verb write -q 4 --order random"}) {
    test::OneSidedBenchmark benchmark;
    const OptionSet set(std::string("--fabric null -n 6400 --warmup 0 ") + line, &benchmark);
    const Outcome outcome = run_on_fabric(benchmark, set.options, set.table);
    EXPECT_EQ(outcome.failure, "") << line;
    EXPECT_EQ(outcome.result.at("ops"), 6400 * set.options.qp) << line;
  }
}

TEST(Null, RefusesDirectionInWithoutClients) {
  test::OneSidedBenchmark benchmark;
  const OptionSet set("--fabric null --direction in", &benchmark);
  EXPECT_THROW(run_on_fabric(benchmark, set.options, set.table), UsageError);
}

TEST(Null, ReportsUnsupportedOptions) {
  for (const auto& [line, feature] :
       {std::pair{"-e", "completion events"}, std::pair{"--inline_recv 32", "inline receive of RC send"}}) {
    SendBenchmark benchmark(true);
    const OptionSet set(std::string("--fabric null ") + line);
    try {
      run_on_fabric(benchmark, set.options, set.table);
      FAIL() << "accepted " << line;
    } catch (const Error& error) {
      EXPECT_EQ(error.what(), std::string("not supported by null0: ") + feature);
    }
  }
}

TEST(Null, RefusesValidate) {
  SendBenchmark benchmark(true);
  const OptionSet set("--fabric null --validate");
  EXPECT_THROW(run_on_fabric(benchmark, set.options, set.table), UsageError);
}

TEST(Null, ReportsTheInlineLimitOfTheDevice) {
  SendBenchmark benchmark(true);
  const OptionSet set("--fabric null -I 4096");
  try {
    run_on_fabric(benchmark, set.options, set.table);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("4096"));
    EXPECT_THAT(error.what(), HasSubstr("1024"));
  }
}

TEST(Null, RefusesDatagramsOverTheMtu) {
  SendBenchmark benchmark(true);
  const OptionSet set("--fabric null -c UD -s 5000");
  try {
    run_on_fabric(benchmark, set.options, set.table);
    FAIL() << "accepted";
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("--size 5000 is over the MTU of 4096"));
  }
}

#ifdef VERBSCOPE_COUNT_ALLOCATIONS
// Counts what the statements of a thread's loop allocate. In the phase `stop` they do one batch, then the drain.
std::uint64_t allocations_of(const Benchmark& benchmark, const OptionSet& set, Phase phase = Phase::stop) {
  NullProvider provider;
  FabricFacts facts;
  facts.alone = true;
  const Plan plan = make_plan(set.options, facts, benchmark.draft());
  NodeRun run(benchmark, plan, Side::server, 0, {&provider, "null0", {1}, -1, {}, false, true});
  run.connect_alone();
  HostNode node;
  RunControl control;
  control.phase = phase;
  control.quit = benchmark.draft().operation.driver == Side::client;
  allocations = 0;
  counting = true;
  run.threads().workload(0).run(node, control, run.threads().tally(0));
  counting = false;
  EXPECT_GT(run.threads().completed(), 0u);
  return allocations;
}

TEST(Null, TheDataPathAllocatesNothing) {
  for (const bool sends : {true, false}) {
    SendBenchmark benchmark(sends);
    const OptionSet set("--fabric null -c UD -s 32 -l 4 -q 2");
    EXPECT_EQ(allocations_of(benchmark, set), 0u) << (sends ? "sender" : "receiver");
  }
  for (const char* line : {"--verb write -l 4 -q 2", "--verb read --wr_api", "--verb write --addresses random"}) {
    test::OneSidedBenchmark benchmark;
    const OptionSet set(std::string("--fabric null ") + line, &benchmark);
    EXPECT_EQ(allocations_of(benchmark, set), 0u) << line;
  }
}

// Sessions get their slots at their first call; what follows allocates nothing.
TEST(Null, RpcsAllocateNothing) {
  const auto allocations_of_rpcs = [](const std::string& options, int requests) {
    EchoBenchmark benchmark({.description = {"rpc_rate", "For tests."}});
    const OptionSet set(
        "--fabric null --machines 17 --batch 16 --outstanding 16 " + options + " -n " + std::to_string(requests),
        &benchmark);
    return allocations_of(benchmark, set, Phase::measure);
  };
  for (const char* options : {"--serve peers", "--serve server", "--cc timely"}) {
    EXPECT_EQ(allocations_of_rpcs(options, 16 * 400), allocations_of_rpcs(options, 16 * 100)) << options;
  }
}

TEST(Null, TheAllocationCounterCounts) {
  allocations = 0;
  counting = true;
  std::free(std::malloc(100));
  counting = false;
  EXPECT_EQ(allocations, 1u);
}
#endif

}  // namespace
}  // namespace verbscope
