// rpc_large as a program on simulated clusters: requests of megabytes, and injected losses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/json.hpp"
#include "tests/microbench/changed_cluster.hpp"
#include "tests/microbench/run_program.hpp"

namespace verbscope {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const Json& only_client(const Json& result) {
  return result.at("clients").at(0).at("result");
}

double client_count(const Json& result, const char* name) {
  return result.at("rpc").at(name).get<double>();
}

// A request of 100 packets: with no loss a client sends as many as the request has and takes an answer for each.
TEST(RpcLarge, SendsOneRequestAtATime) {
  const Json result = test::result_of("rpc_large --fabric sim:cx5 -s 100800 --packet_size 1024 -D 1ms");
  EXPECT_EQ(result.at("clients").size(), 1);
  EXPECT_EQ(client_count(result, "answered"), 0) << "the server calls";
  const Json& client = only_client(result);
  EXPECT_NEAR(client_count(client, "packets_sent") / client_count(client, "answered"), 100, 1);
  EXPECT_EQ(client_count(client, "retransmitted"), 0);
  // One at a time: the mean time of a request is the time of the interval divided by their number.
  EXPECT_NEAR(1e3 / result.at("rate_mops").get<double>(), result.at("lat_mean_ns").get<double>(),
              0.02 * result.at("lat_mean_ns").get<double>());
}

// Of N packets a share p is lost, requests and answers alike, and each loss costs one time-out.
TEST(RpcLarge, LosesTheShareOfPacketsThatIsAsked) {
  const Json result = test::result_of(
      "rpc_large --fabric sim:cx5ib -s 200000 --packet_size 1024 --rto 50us --loss 0.002 --warmup 1ms -D 20ms");
  const Json& client = only_client(result);
  const double packets = client_count(client, "packets_sent") + client_count(client, "packets_received");
  EXPECT_NEAR(client_count(client, "timeouts"), 0.002 * packets, 0.3 * 0.002 * packets);
  EXPECT_GE(client_count(client, "retransmitted"), client_count(client, "timeouts"));
  EXPECT_EQ(result.at("unanswered"), 0);
}

// Without its bypass all packets of requests pass through the rate limiter, at most the credits of the session at once.
TEST(RpcLarge, CountsThePacketsInTheRateLimiter) {
  const std::string command = "rpc_large --fabric sim:cx5 -s 100000 --cc timely";
  const Json result = test::result_of(command + " --bypass_limiter off");
  EXPECT_GT(result.at("limiter_mean_packets").get<double>(), 0);
  EXPECT_GT(result.at("limiter_peak_packets").get<double>(), result.at("limiter_mean_packets").get<double>());
  EXPECT_LE(result.at("limiter_peak_packets"), 32);
  EXPECT_EQ(test::result_of(command).at("limiter_peak_packets"), 0);
}

// On a long path a queue of sends is full at times, and a thread waits for its completions alone. Without losses it
// never waits for a time-out.
TEST(RpcLarge, NeverTimesOutWithoutLosses) {
  const TempDir folder;
  const std::string fabric = test::changed_cluster(folder, {{"/fabric/cable_ns", 20'000}}, "cx4");
  const Json result = test::result_of("rpc_large --credits 256 -s 1000000 -D 10ms --fabric " + fabric);
  EXPECT_EQ(result.at("timeouts"), 0);
  EXPECT_EQ(result.at("retransmitted"), 0);
}

TEST(RpcLarge, RefusesLossesOnHosts) {
  EXPECT_THAT(test::refusal_of("rpc_large --loss 1e-4"),
              AllOf(HasSubstr("--loss 0.0001"), HasSubstr("--fabric sim:NAME"), HasSubstr("tc netem")));
  EXPECT_THAT(test::refusal_of("rpc_large --fabric sim:cx5 --loss 2"), AllOf(HasSubstr("--loss 2"), HasSubstr("1")));
}

}  // namespace
}  // namespace verbscope
