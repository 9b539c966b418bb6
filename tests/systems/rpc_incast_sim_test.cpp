// rpc_incast as a program on simulated clusters: round trips in the queue of one switch port, and RPCs beside it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/json.hpp"
#include "tests/microbench/run_program.hpp"

namespace verbscope {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr double kRpcFrameBytes = 1024 + 20 + 8 + 18 + 12 + 40 + 20;  // about: RoCE headers, Ethernet, gap

// Without congestion control all credits of all senders wait in the queue of the server's port: a packet waits for
// senders * credits packets (section 6.5).
TEST(RpcIncast, QueuesAllCreditsWithoutCongestionControl) {
  const Json result = test::result_of("rpc_incast --fabric sim:cx4 --machines 6 -s 200000 --warmup 500us -D 2ms");
  const double packet_ns = kRpcFrameBytes * 8 / 23;
  EXPECT_NEAR(result.at("rtt_p50_ns").get<double>(), 5 * 32 * packet_ns, 0.15 * 5 * 32 * packet_ns);
  EXPECT_NEAR(result.at("bandwidth_gbit_per_s").get<double>(), 22, 1.5);
}

// Ten senders would have a queue of 120 us; Timely raises no rate above 50 us.
TEST(RpcIncast, TimelyKeepsTheQueueShort) {
  const Json result =
      test::result_of("rpc_incast --fabric sim:cx4 --machines 11 -s 200000 --cc timely --warmup 5ms -D 2ms");
  EXPECT_LT(result.at("rtt_p50_ns").get<double>(), 55'000);
  EXPECT_GT(result.at("limiter_mean_packets").get<double>(), 0);
  EXPECT_GT(result.at("goodput_gbit_per_s").get<double>(), 20);
}

// The last thread of each client calls those of other clients and never the server: without --background there is none.
TEST(RpcIncast, MeasuresRequestsInTheBackground) {
  const std::string command = "rpc_incast --fabric sim:cx4 --machines 4 -s 200000 --warmup 500us -D 2ms";
  const Json with = test::result_of(command + " --background 4000");
  EXPECT_GT(with.at("background_samples").get<int>(), 100);
  EXPECT_GT(with.at("background_p99_ns").get<double>(), with.at("background_p50_ns").get<double>());
  EXPECT_EQ(with.at("unanswered"), 0);
  EXPECT_EQ(with.at("handled_twice"), 0);
  EXPECT_FALSE(test::result_of(command).contains("background_samples"));
}

TEST(RpcIncast, RefusesWhatItCannotRun) {
  EXPECT_THAT(test::refusal_of("rpc_incast --fabric sim:cx4 --machines 2 --background 4000"),
              AllOf(HasSubstr("--background 4000"), HasSubstr("--machines 3")));
  EXPECT_THAT(test::refusal_of("rpc_incast --fabric sim:cx4 --background 4000 --threads 1"),
              AllOf(HasSubstr("--background 4000"), HasSubstr("--threads 2")));
}

}  // namespace
}  // namespace verbscope
