// all_to_all as a program on simulated clusters.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/microbench/run_program.hpp"

namespace verbscope {
namespace {

using test::record_of;
using test::refusal_of;
using test::result_of;
using testing::HasSubstr;

const std::string kShort = " -D 200us --warmup 100us";

double counted(const Json& record, std::size_t node, const char* count) {
  return record.at("counters").at(node).at("extra").at(count);
}

TEST(AllToAll, EveryMachinePostsAndIsATarget) {
  const Json record = record_of("all_to_all --fabric sim:cib --machines 4 --threads 3 --window 8 -s 32" + kShort);
  const Json& result = record.at("result");
  ASSERT_EQ(result.at("clients").size(), 3u);
  double sum = result.at("rate_mops");
  for (const Json& client : result.at("clients")) sum += client.at("result").at("rate_mops").get<double>();
  EXPECT_NEAR(result.at("mops_per_machine"), sum / 4, 1e-6);
  EXPECT_LT(result.at("mops_spread"), 0.05);
  for (std::size_t node = 0; node < 4; ++node) {
    EXPECT_NEAR(counted(record, node, "reads_served") / result.at("window_ops").get<double>(), 1, 0.05) << node;
  }
}

TEST(AllToAll, EachThreadHasQpsToEachOtherMachine) {
  const Json record = record_of("all_to_all --fabric sim:cx3 --machines 3 --threads 2 --vms 4 --window 4" + kShort);
  EXPECT_EQ(record.at("config").at("qp"), 8);
  EXPECT_EQ(record.at("config").at("clients"), 2);
}

TEST(AllToAll, WindowLimitsAThreadOverAllItsQps) {
  // Few READs are under way at a time: each takes as long as alone, whatever the number of QPs, when their state and
  // the translations of their places are at hand.
  const std::string run = "all_to_all --fabric sim:cib --machines 3 --window 2 -D 1ms --warmup 1ms";
  const double one = result_of(run).at("mops_per_machine");
  EXPECT_NEAR(result_of(run + " --vms 3").at("mops_per_machine").get<double>() / one, 1, 0.05);
}

TEST(AllToAll, ReadsAreCheckedByteForByte) {
  const Json result = result_of("all_to_all --fabric sim:cib --machines 3 --threads 2 --validate" + kShort);
  EXPECT_EQ(result.at("validation").at("wrong"), 0);
  EXPECT_GT(result.at("validation").at("checked"), 100);
}

TEST(AllToAll, ReadsSeenInMemoryAreSignaledByCqMod) {
  const Json record = record_of(
      "all_to_all --fabric sim:cib --machines 3 --threads 2 --window 8 -Q 16 --seen_by memory --alignment 64" + kShort);
  const double ops = record.at("result").at("window_ops");
  const double bytes = record.at("counters").at(0).at("events").at("payload_bytes_to_host").get<double>() / ops;
  EXPECT_NEAR(bytes, 64 + 64.0 / 16, 1.5);  // what a READ brings, and its share of a completion
}

TEST(AllToAll, UnsignaledWritesAreLimitedByCqModAlone) {
  for (const char* transport : {"RC", "UC"}) {
    const std::string run =
        std::string("all_to_all --fabric sim:cib --machines 3 --verb write -s 32 -I 32 -c ") + transport + kShort;
    const double batches = result_of(run + " -Q 32").at("mops_per_machine");
    EXPECT_GT(batches, 2 * result_of(run + " --window 2").at("mops_per_machine").get<double>()) << transport;
  }
}

TEST(AllToAll, RecordIsTheSameWithTwoSimThreads) {
  const std::string run = "all_to_all --fabric sim:cib --machines 5 --threads 2 --window 8" + kShort;
  EXPECT_EQ(result_of(run), result_of(run + " --sim_threads 2"));
}

TEST(AllToAll, RefusesUnsupportedOptions) {
  const std::string run = "all_to_all --fabric sim:cib ";
  EXPECT_THAT(refusal_of(run + "--qp 3"), AllOf(HasSubstr("--qp 3"), HasSubstr("--vms")));
  EXPECT_THAT(refusal_of(run + "--clients 3"), AllOf(HasSubstr("--clients 3"), HasSubstr("--machines 2 sets it to 1")));
  EXPECT_THAT(refusal_of(run + "--client_threads 3"), AllOf(HasSubstr("--client_threads 3"), HasSubstr("--threads 1")));
  EXPECT_THAT(refusal_of(run + "-Q 8"), AllOf(HasSubstr("--cq_mod 8"), HasSubstr("--seen_by memory")));
  EXPECT_THAT(refusal_of(run + "--verb write -Q 8 --window 4"),
              AllOf(HasSubstr("--window 4"), HasSubstr("--cq_mod 8")));
  EXPECT_THAT(refusal_of(run + "--verb write --validate"),
              AllOf(HasSubstr("--validate"), HasSubstr("all machines post WRITEs")));
  EXPECT_THAT(refusal_of(run + "-c UC"), HasSubstr("--connection UC: it has no read"));
  EXPECT_THAT(refusal_of(run + "-c UD --verb write"), HasSubstr("--connection UD"));
}

}  // namespace
}  // namespace verbscope
