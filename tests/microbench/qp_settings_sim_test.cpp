// Options of QPs and paths: those that a simulated cluster supports change its times, the others are refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/microbench/changed_cluster.hpp"
#include "tests/microbench/run_program.hpp"

namespace verbscope {
namespace {

using test::record_of;
using test::refusal_of;
using test::result_of;
using test::run_program;
using testing::HasSubstr;

std::string lossy_reads(const TempDir& folder) {
  const std::string lossy = test::changed_cluster(folder, {{"/fabric/loss_probability", 0.002}});
  return "verb_latency --verb read -s 8 -n 2000 --fabric " + lossy;
}

// A READ whose packet is lost takes the time-out of InfiniBand Architecture Specification 1.3, volume 1, 9.7.6.1.3, and
// then the time of a READ.
TEST(QpSettings, ALostPacketCostsTheTimeout) {
  const TempDir folder;
  for (const int timeout : {2, 6, 10}) {
    const Json result = result_of(lossy_reads(folder) + " --qp_timeout " + std::to_string(timeout));
    const double longest_us = result.at("lat_max_ns").get<double>() / 1e3;
    const double read_us = result.at("lat_p50_ns").get<double>() / 1e3;
    const double timeout_us = 4.096 * (1 << timeout);
    EXPECT_GT(longest_us, timeout_us) << timeout;
    EXPECT_LT(longest_us, timeout_us + 3 * read_us) << timeout;
  }
}

// Firmware that waits for twice 2^max(code, 8) units, as its profile says.
TEST(QpSettings, ProfileHasAFloorAndAFactorOfTheTimeout) {
  const TempDir folder;
  const std::string fabric = test::changed_cluster(folder, {{"/fabric/loss_probability", 0.002}});
  const std::string path = fabric.substr(fabric.find(':') + 1);
  Json profile = read_json_file(path);
  const auto measured = [](int value) { return Json{{"value", value}, {"source", "measured"}, {"cite", "made up"}}; };
  profile["nic"]["ack_timeout_floor"] = measured(8);
  profile["nic"]["ack_timeout_factor"] = measured(2);
  std::ofstream(path) << profile.dump();
  for (const int timeout : {2, 8, 10}) {
    const Json result =
        result_of(fmt::format("verb_latency --verb read -s 8 -n 2000 --fabric {} -u {}", fabric, timeout));
    const double longest_us = result.at("lat_max_ns").get<double>() / 1e3;
    const double timeout_us = 2 * 4.096 * (1 << std::max(timeout, 8));
    EXPECT_GT(longest_us, timeout_us) << timeout;
    EXPECT_LT(longest_us, timeout_us + 3 * result.at("lat_p50_ns").get<double>() / 1e3) << timeout;
  }
}

TEST(QpSettings, ALostPacketFailsTheRunWithoutRetries) {
  const TempDir folder;
  const test::Ran ran = run_program(lossy_reads(folder) + " -u 2 --retry_count 0");
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_THAT(ran.err, HasSubstr("transport retry counter exceeded"));
}

TEST(QpSettings, FailureNamesATimeoutOfZero) {
  const TempDir folder;
  const test::Ran ran = run_program(lossy_reads(folder) + " --qp_timeout 0");
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_THAT(ran.err, HasSubstr("did not complete --iters 2000"));
  EXPECT_THAT(ran.err, HasSubstr("--qp_timeout 0"));
}

// Little's law: with one outstanding READ the rate is one per round trip of the adapters, which is shorter than the
// latency at the CPU. With k of them it is at most k times that.
TEST(QpSettings, OutstandingReadsLimitTheRate) {
  const auto rate = [](int outs) {
    return result_of("read_rate -s 8 --fabric sim:cib -o " + std::to_string(outs)).at("rate_mops").get<double>();
  };
  const double latency_us =
      result_of("verb_latency --verb read -s 8 --fabric sim:cib -n 200").at("lat_min_ns").get<double>() / 1e3;
  const double one = rate(1);
  EXPECT_GT(one * latency_us, 1);
  EXPECT_LT(one * latency_us, 1.25);
  for (const int outs : {2, 4}) {
    EXPECT_LE(rate(outs), 1.01 * outs * one) << outs;
    EXPECT_GE(rate(outs), 0.9 * outs * one) << outs;
  }
}

TEST(QpSettings, RecordHasGivenAndChosenValues) {
  const std::string run = "send_rate --fabric sim:cib --warmup 20us -D 50us ";
  const Json usual = record_of(run).at("config");
  for (const char* name : {"tclass", "sl", "flow_label", "pkey_index"}) EXPECT_EQ(usual.at(name), 0) << name;
  EXPECT_EQ(usual.at("qp_timeout"), 14);
  EXPECT_EQ(usual.at("retry_count"), 7);
  EXPECT_EQ(usual.at("outs"), 16);
  EXPECT_EQ(usual.at("rnr_timer"), 12);
  EXPECT_EQ(usual.at("rnr_retry"), 7);
  const Json asked =
      record_of(run + "-x 0 --tclass 96 -S 3 --flow_label 1048575 -u 0 --retry_count 2 -o 5").at("config");
  EXPECT_EQ(asked.at("tclass"), 96);
  EXPECT_EQ(asked.at("sl"), 3);
  EXPECT_EQ(asked.at("flow_label"), 1048575);
  EXPECT_EQ(asked.at("qp_timeout"), 0);
  EXPECT_EQ(asked.at("retry_count"), 2);
  EXPECT_EQ(asked.at("outs"), 5);
  EXPECT_TRUE(record_of(run + "-c UD").at("config").at("qp_timeout").is_null());
}

// As many RECVs as outstanding SENDs, and a receiver that is busy sending: it sends RNR NAKs, and the sender waits for
// the time in them.
TEST(QpSettings, RnrTimerSetsTheDelayOfTheSender) {
  const std::string run = "send_rate --fabric sim:cx6 -s 2 -b -t 83 -r 83";
  const auto rate = [&run](int timer) {
    return result_of(fmt::format("{} --rnr_timer {}", run, timer)).at("rate_mops").get<double>();
  };
  // 10 us and 640 us (IBTA vol. 1, "Encoding for RNR NAK Timer Field").
  EXPECT_GT(rate(1), 3 * rate(12));
  const test::Ran failed = run_program(run + " --rnr_retry 0");
  EXPECT_EQ(failed.exit_code, 1);
}

TEST(QpSettings, AreRefusedIfTheyHaveNoEffect) {
  for (const char* fabric : {"sim:cib", "null"}) {
    const std::string run = std::string("send_rate -D 1ms --fabric ") + fabric;
    EXPECT_THAT(refusal_of(run + " --pkey_index 1"), HasSubstr("size of the table")) << fabric;
    EXPECT_THAT(refusal_of(run + " --outs 17"), HasSubstr("allows at most 16")) << fabric;
    EXPECT_THAT(refusal_of(run + " --tclass 8"), HasSubstr("have no GRH")) << fabric;
    EXPECT_THAT(refusal_of(run + " --flow_label 8"), HasSubstr("have no GRH")) << fabric;
    EXPECT_THAT(refusal_of(run + " -c UD --qp_timeout 3"), HasSubstr("UD does not retransmit")) << fabric;
    EXPECT_THAT(refusal_of(run + " -c UC --retry_count 3"), HasSubstr("UC does not retransmit")) << fabric;
    EXPECT_THAT(refusal_of(run + " -c UC --rnr_retry 3"), HasSubstr("UC does not retransmit")) << fabric;
    EXPECT_THAT(refusal_of(run + " -c UC --outs 3"), HasSubstr("neither READs nor atomics")) << fabric;
  }
}

// Both sides send without a posted RECV, and both QPs fail, so no thread is left to report the other side's failure.
TEST(QpSettings, AnErrorOfEveryThreadIsReported) {
  const test::Ran ran = run_program("send_rate --fabric sim:cx6 -s 2 -b -t 83 -r 83 --rnr_retry 0");
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_THAT(ran.err, HasSubstr("RNR retry counter exceeded"));
}

// An interval of 50 us, and timeouts of 67 ms.
TEST(QpSettings, FailureNamesPacketsThatWereSentAgain) {
  const TempDir folder;
  const std::string lossy = test::changed_cluster(folder, {{"/fabric/loss_probability", 0.1}});
  for (const char* benchmark : {"read_rate", "kv_atomic --threads 4 --put_percent 50 --keys 4096 --window 4"}) {
    const test::Ran ran = run_program(std::string(benchmark) + " -D 50us --warmup 0 --longest 20ms --fabric " + lossy);
    EXPECT_EQ(ran.exit_code, 1);
    EXPECT_THAT(ran.err, testing::AllOf(HasSubstr("packets were sent again"), HasSubstr("--qp_timeout"))) << benchmark;
  }
  // Its requests go over UC, where nothing is sent again but by the program.
  const test::Ran store = run_program("kv_rate -D 50us --longest 2ms --fabric " + lossy);
  EXPECT_EQ(store.exit_code, 1);
  EXPECT_THAT(store.err, HasSubstr("packets were lost by the network"));
}

}  // namespace
}  // namespace verbscope
