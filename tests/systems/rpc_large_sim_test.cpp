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

const Json& client_of(const Json& result) {
  return result.at("clients").at(0).at("result");
}

double count_of(const Json& result, const char* name) {
  return result.at("rpc").at(name).get<double>();
}

// A request of 100 packets: with no loss a client sends as many as the request has and takes an answer for each.
TEST(RpcLarge, SendsOneRequestAtATime) {
  const Json result = test::result_of("rpc_large --fabric sim:cx5 -s 100800 --packet_size 1024 -D 1ms");
  EXPECT_EQ(result.at("clients").size(), 1);
  const Json& client = client_of(result);
  EXPECT_NEAR(count_of(client, "packets_sent") / count_of(client, "answered"), 100, 1);
  EXPECT_EQ(count_of(client, "retransmitted"), 0);
  // One at a time: the mean time of a request is the time of the interval divided by their number.
  EXPECT_NEAR(1e3 / result.at("rate_mops").get<double>(), result.at("lat_mean_ns").get<double>(),
              0.02 * result.at("lat_mean_ns").get<double>());
}

// Of N packets a share p is lost, requests and answers alike, and each loss costs one time-out.
TEST(RpcLarge, LosesTheShareOfPacketsThatIsAsked) {
  const Json result = test::result_of(
      "rpc_large --fabric sim:cx5ib -s 200000 --packet_size 1024 --rto 50us --loss 0.002 --warmup 1ms -D 20ms");
  const Json& client = client_of(result);
  const double packets = count_of(client, "packets_sent") + count_of(client, "packets_received");
  EXPECT_NEAR(count_of(client, "timeouts"), 0.002 * packets, 0.3 * 0.002 * packets);
  EXPECT_GE(count_of(client, "retransmitted"), count_of(client, "timeouts"));
  EXPECT_EQ(result.at("unanswered"), 0);
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
