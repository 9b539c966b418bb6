// Doorbell registers of a simulated context: shared by QPs under a lock, or one per thread.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/error.hpp"
#include "microbench/run/sim_fabric.hpp"
#include "tests/microbench/test_benchmarks.hpp"
#include "tests/verbs/mock_provider.hpp"

namespace verbscope {
namespace {

using test::OneSidedBenchmark;
using test::OptionSet;
using testing::HasSubstr;

double writes_of(const std::string& line) {
  OneSidedBenchmark benchmark;
  const OptionSet set("--verb write -s 16 -I 16 -Q 1 --warmup 50us -D 100us --clients 1 " + line, &benchmark);
  const Outcome outcome = SimFabric(benchmark, set.options).run();
  EXPECT_EQ(outcome.failure, "");
  return outcome.result.at("rate_mops");
}

TEST(Doorbells, SixteenQpsHaveARegisterEach) {
  const std::string run = "--fabric sim:cib --threads 14 --window 16 --uars ";
  EXPECT_NEAR(writes_of(run + "default") / writes_of(run + "exclusive"), 1, 0.01);
}

TEST(Doorbells, ThreadsWaitForASharedRegister) {
  // 56 QPs: four have a register each, the others share twelve with QPs of other threads. Over UC, where the adapter
  // has no acknowledgements to take in, which would be the limit of both.
  const std::string run = "--fabric sim:cib -c UC --threads 14 -q 4 --window 8 --uars ";
  const double exclusive = writes_of(run + "exclusive");
  EXPECT_LT(writes_of(run + "default"), 0.9 * exclusive);
  EXPECT_NEAR(writes_of(run + "128") / exclusive, 1, 0.01);  // more than there are QPs
  EXPECT_LT(writes_of(run + "8"), writes_of(run + "default"));
}

TEST(Doorbells, OneThreadNeverWaits) {
  const std::string run = "--fabric sim:cib --threads 1 -q 64 --window 4 --uars ";
  EXPECT_NEAR(writes_of(run + "default") / writes_of(run + "exclusive"), 1, 0.01);
}

// Two threads on one QP are slower than two with a QP each, and more threads do not make that QP faster. Groups with
// QPs of their own do not slow each other down.
TEST(SharedQps, AreSlowerByTheLock) {
  const auto rate = [](const std::string& threads, const std::string& sharing) {
    return writes_of("--fabric sim:cx6 --wait all --window 8 --threads " + threads + " --threads_per_qp " + sharing);
  };
  const double alone = rate("1", "1");
  EXPECT_LT(rate("2", "2"), alone);
  EXPECT_LT(rate("8", "8"), rate("2", "2"));
  EXPECT_NEAR(rate("8", "2") / rate("2", "2"), 4, 0.2);
  EXPECT_NEAR(rate("1", "4") / alone, 1, 1e-9);  // a group of one
}

// The last group has one thread less. Each thread posts its share of --iters on each QP.
TEST(SharedQps, CountTheOperationsOfEachThread) {
  OneSidedBenchmark benchmark;
  const OptionSet set(
      "--fabric sim:cib --verb read --clients 1 --threads 3 --threads_per_qp 2 -q 2 --wait oldest --window 4",
      &benchmark);
  const Outcome outcome = SimFabric(benchmark, set.options).run();
  EXPECT_EQ(outcome.failure, "");
  EXPECT_EQ(outcome.result.at("threads").size(), 3u);
  const OptionSet exact(
      "--fabric sim:cib --verb read --clients 1 --threads 4 --threads_per_qp 2 -q 3 --wait all "
      "--window 4 -n 200 --warmup 20us",
      &benchmark);
  EXPECT_EQ(SimFabric(benchmark, exact.options).run().result.at("ops"), 2 * 3 * 200);
}

TEST(Doorbells, Mlx4LocksThemForBlueFlameOnly) {
  // 16 bytes inline go by BlueFlame; in lists a doorbell needs no lock.
  const std::string run = "--fabric sim:cx3 --threads 8 -q 4 --window 8 --uars ";
  EXPECT_LT(writes_of(run + "default"), 0.9 * writes_of(run + "exclusive"));
  EXPECT_NEAR(writes_of(run + "default -l 8") / writes_of(run + "exclusive -l 8"), 1, 0.01);
}

TEST(Doorbells, DefaultToTheRegistersOfTheDriver) {
  const std::string run = "--fabric sim:cx3 --threads 8 -q 4 --window 8 ";
  EXPECT_EQ(writes_of(run), writes_of(run + "--uars default"));
}

// The server is the target of four QPs, each of one client thread with its own doorbell register. With one register for
// all threads the rate would be a fraction.
TEST(Doorbells, OfClientsDoNotLimitATargetServer) {
  const std::string run = "--fabric sim:cx3 -c UC --direction in -q 8 --client_threads 8 --uars ";
  EXPECT_EQ(writes_of(run + "default"), writes_of(run + "exclusive"));
  EXPECT_LT(writes_of("--fabric sim:cx3 -c UC -q 1 --threads 8 --uars default"), 0.5 * writes_of(run + "default"));
}

TEST(Doorbells, Mlx4RefusesTheOption) {
  EXPECT_THAT(error_of([] { writes_of("--fabric sim:cx3 --uars 32"); }),
              HasSubstr("not supported by sim0: a choice of 32 doorbell registers"));
}

}  // namespace
}  // namespace verbscope
