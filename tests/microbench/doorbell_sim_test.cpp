// Doorbell registers that QPs of a simulated context share under a lock, against registers of their own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/error.hpp"
#include "microbench/run/sim_run.hpp"
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
  const Outcome outcome = run_on_simulator(benchmark, set.options);
  EXPECT_EQ(outcome.failure, "");
  return outcome.result.at("rate_mops");
}

TEST(Doorbells, SixteenQpsHaveARegisterEach) {
  const std::string run = "--fabric sim:cib --threads 14 --window 16 --uars ";
  EXPECT_NEAR(writes_of(run + "default") / writes_of(run + "exclusive"), 1, 0.01);
}

TEST(Doorbells, QpsOfSeveralThreadsWaitForTheRegisterThatTheyShare) {
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

TEST(Doorbells, OfMlx4AreLockedForBlueFlameAlone) {
  // 16 bytes inline go by BlueFlame; without inlining, or in lists, a doorbell needs no lock.
  const std::string run = "--fabric sim:cx3 --threads 8 -q 4 --window 8 ";
  EXPECT_LT(writes_of(run + "--uars default"), 0.9 * writes_of(run));
  EXPECT_NEAR(writes_of(run + "-l 8 --uars default") / writes_of(run + "-l 8"), 1, 0.01);
}

TEST(Doorbells, OfMlx4LeaveNoChoice) {
  EXPECT_THAT(error_of([] { writes_of("--fabric sim:cx3 --uars exclusive"); }),
              HasSubstr("not supported by sim0: a doorbell register a thread"));
  EXPECT_THAT(error_of([] { writes_of("--fabric sim:cx3 --uars 32"); }),
              HasSubstr("not supported by sim0: a choice of 32 doorbell registers"));
}

}  // namespace
}  // namespace verbscope
