// incast_rate, and datagrams among all, as programs on simulated networks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/microbench/changed_cluster.hpp"
#include "tests/microbench/run_program.hpp"

namespace verbscope {
namespace {

using test::record_of;
using test::refusal_of;
using test::result_of;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// What 25 Gb/s carry of packets with 1024 bytes of payload and 82 bytes of RoCE around them.
constexpr double kLine = 25.0 * 1024 / 1106;

double counted(const Json& record, const std::string& node, const std::string& key) {
  for (const Json& report : record.at("counters")) {
    if (report.at("node") == node) return report.at("extra").at(key).get<double>();
  }
  ADD_FAILURE() << node << " has no " << key;
  return 0;
}

const std::string kTwoToOne =
    "incast_rate --fabric sim:cx4 --verb read -s 1m --clients 2 --window 32 --together -D 100ms";

TEST(TwoToOne, GetsFarLessThanHalfOfTheLinkWithoutAnyControl) {
  const Json record = record_of(kTwoToOne);
  EXPECT_LT(record.at("result").at("bandwidth_gbit_per_s").get<double>(), 8);
  EXPECT_GT(counted(record, "server", "dropped_full_buffer"), 100);
  EXPECT_GT(counted(record, "server", "ack_timeout_ps"), 0.2 * 100e9);
}

TEST(TwoToOne, GetsTheLinkWithPausesOfBoth) {
  const Json record = record_of(kTwoToOne + " --flow_control pfc");
  EXPECT_GT(record.at("result").at("bandwidth_gbit_per_s").get<double>(), 22.5);
  EXPECT_EQ(counted(record, "server", "dropped_full_buffer"), 0);
  const double window = record.at("result").at("window_s").get<double>() * 1e12;
  for (const char* client : {"client0", "client1"}) {
    EXPECT_NEAR(counted(record, client, "rx_pause_ps") / window, 0.5, 0.1);
  }
}

TEST(TwoToOne, GetsTheLinkByDcqcnAndLosesNothing) {
  const Json record = record_of(kTwoToOne + " --congestion_control dcqcn");
  EXPECT_GT(record.at("result").at("bandwidth_gbit_per_s").get<double>(), 21);
  EXPECT_EQ(counted(record, "server", "dropped_full_buffer"), 0);
  EXPECT_GT(counted(record, "server", "np_cnp_sent"), 0);
  for (const char* client : {"client0", "client1"}) EXPECT_GT(counted(record, client, "rate_limited_ps"), 0);
}

TEST(TwoToOne, PrintsTheNetworkCountersOnTheConsole) {
  const auto said = [](const std::string& options) {
    return test::run_program("incast_rate --fabric sim:cx4 --verb write -s 64k --clients 2 --window 128 -D 2ms" +
                             options)
        .out;
  };
  EXPECT_THAT(said(""), AllOf(HasSubstr("dropped by full buffers"), HasSubstr("sent again")));
  EXPECT_THAT(said(" --flow_control pfc"), AllOf(HasSubstr("pauses"), Not(HasSubstr("dropped"))));
  EXPECT_THAT(said(" --congestion_control dcqcn"), AllOf(HasSubstr("CNPs"), HasSubstr("deepest queue")));
  EXPECT_THAT(test::run_program("write_rate --fabric sim:cx4 -D 50us --warmup 50us").out, Not(HasSubstr("network:")));
}

TEST(Incast, SharesTheLinkEvenly) {
  for (const std::string options : {"--verb write -s 64k", "--verb send -s 64k", "--verb read -s 64k"}) {
    const Json result = result_of("incast_rate --fabric sim:cx4 --clients 4 --warmup 2ms -D 4ms " + options);
    EXPECT_NEAR(result.at("bandwidth_gbit_per_s").get<double>(), kLine, 0.02 * kLine) << options;
    EXPECT_GT(result.at("fairness").get<double>(), 0.98) << options;
    EXPECT_EQ(result.at("flows"), 4) << options;
  }
}

// Operations of several flows complete together, but a thread takes no more than it has left.
TEST(Incast, MeasuresExactlyTheOperationsOfTheGoal) {
  for (const auto& [options, operations] : {std::pair("--verb write -s 8 -q 8 --clients 1", 8 * 333),
                                            std::pair("--verb read -s 8 -q 8 --clients 2", 8 * 333),
                                            std::pair("--verb send -c UC -s 8 -q 4 --clients 1", 4 * 333)}) {
    const Json result = result_of(std::string("incast_rate --fabric sim:cx4 --warmup 100us -n 333 ") + options);
    EXPECT_EQ(result.at("ops"), operations) << options;
  }
}

// Kalia et al., NSDI 2019, Table 5, without congestion control: of N nodes all but one send to that one. The queue is
// all windows, (N - 1) * 32 packets of 1048 bytes at 25 Gb/s.
TEST(Incast, RoundTripsAreThoseOfAllWindows) {
  for (const auto& [nodes, published] : {std::pair{20, 202e3}, {50, 524e3}, {100, 1056e3}}) {
    const Json result =
        result_of("incast_rate --fabric sim:cx4 --verb send -c UD -s 954 --warmup 4ms -D 3ms --clients " +
                  std::to_string(nodes - 1));
    const double trip = result.at("lat_p50_ns").get<double>();
    EXPECT_NEAR(trip, published, 0.05 * published) << nodes;
    EXPECT_NEAR(trip, (nodes - 1) * 32 * 1048 * 8 / 25.0, 0.02 * published) << nodes;
    EXPECT_NEAR(result.at("bandwidth_gbit_per_s").get<double>(), 25.0 * 954 / 1048, 0.2) << nodes;
  }
}

TEST(Incast, CountsLostDatagrams) {
  const TempDir folder;
  const std::string lossy = test::changed_cluster(folder, {{"/fabric/loss_probability", 0.001}}, "cx4");
  const Json result =
      result_of("incast_rate --fabric " + lossy + " --verb send -c UD -s 954 --clients 4 --warmup 2ms -D 5ms");
  // 3 million datagrams a second for 5 ms and more, and as many answers, of which one in a thousand is lost.
  EXPECT_GT(result.at("lost").get<int>(), 20);
}

TEST(Incast, RejectsInvalidOptions) {
  EXPECT_THAT(refusal_of("incast_rate --fabric sim:cx4 --verb write -c UC"),
              AllOf(HasSubstr("--verb write"), HasSubstr("UC")));
  EXPECT_THAT(refusal_of("incast_rate --fabric sim:cx4 --verb write --together"), HasSubstr("--together"));
  EXPECT_THAT(refusal_of("incast_rate --fabric sim:cx4 --window 500"),
              AllOf(HasSubstr("--window 500"), HasSubstr("128")));
  EXPECT_THAT(refusal_of("write_rate --fabric sim:cib --flow_control pfc"),
              AllOf(HasSubstr("--flow_control"), HasSubstr("infiniband")));
  EXPECT_THAT(refusal_of("write_rate --fabric null --congestion_control dcqcn"), HasSubstr("--congestion_control"));
}

TEST(AcrossRacks, ARoundTripTakesFourPassesMore) {
  const TempDir folder;
  const std::string far = test::changed_cluster(folder, {{"/fabric/rack_nodes", 1}}, "cx4");
  const std::string echo = "verb_latency --verb send -c UD -s 32 -I 32 -D 2ms --fabric ";
  const auto trip = [&](const std::string& cluster) {
    return 2 * result_of(echo + cluster).at("latency").at(0).at("lat_p50_ns").get<double>();
  };
  // Two more switches and cables each way, and an uplink of 100 Gb/s begins only when 122 bytes at 25 Gb/s allow it.
  EXPECT_NEAR(trip(far) - trip("sim:cx4"), 4 * (500 + 15) + 2 * 122 * 8 * (1 / 25.0 - 1 / 100.0), 25);
}

TEST(DatagramsAmongAll, AreTheSameForAnyNumberOfThreads) {
  const std::string all =
      "all_to_all --fabric sim:cx4 --verb send -c UD --machines 24 -s 20 -I 32 -D 50us --warmup 50us --sim_threads ";
  Json first = record_of(all + "1");
  EXPECT_GT(first.at("result").at("rate_mops").get<double>(), 3);
  for (const char* threads : {"2", "3", "24"}) {
    const Json other = record_of(all + threads);
    EXPECT_EQ(other.at("result"), first.at("result")) << threads;
    EXPECT_EQ(other.at("counters"), first.at("counters")) << threads;
  }
}

}  // namespace
}  // namespace verbscope
