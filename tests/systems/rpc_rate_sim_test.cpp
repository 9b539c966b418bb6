// rpc_rate as a program on simulated clusters: the packets of a call, calls on networks that lose packets, and what
// eRPC's paper (Kalia et al., NSDI 2019) says about latencies.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/error.hpp"
#include "common/json.hpp"
#include "tests/microbench/changed_cluster.hpp"
#include "tests/microbench/run_program.hpp"

namespace verbscope {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr const char* kShortRpcs = " --warmup 50us -D 200us ";

double count_of(const Json& result, const char* name) {
  return result.at("rpc").at(name).get<double>();
}

void expect_each_answered_once(const Json& result) {
  EXPECT_EQ(result.at("unanswered"), 0);
  EXPECT_EQ(result.at("handled_twice"), 0);
  EXPECT_EQ(count_of(result, "unknown"), 0);
}

TEST(RpcRate, AnswersEveryCallWithEveryOption) {
  for (const char* options :
       {"", "--serve server", "--threads 3 --machines 3", "-I 0", "--cc timely", "--cc timely --bypass_limiter off",
        "--cc timely --bypass_timely off --batched_stamps off", "--cc dcqcn", "--cc dcqcn --bypass_limiter off",
        "--handler worker", "--rpc fasst", "--rpc fasst --serve server --threads 2 -s 1000",
        "--handler_ns 500 --slow_percent 30", "--handler worker --workers 3 --threads 2 -s 1500 --slow_percent 50",
        "--preallocate off --zero_copy off --multi_packet_rq off", "--rpc fasst --multi_packet_rq on",
        "--credits 1 --outstanding 90", "-s 8 --response_size 5000", "-s 5000 --response_size 8 --credits 2"}) {
    SCOPED_TRACE(options);
    const Json result = test::result_of(std::string("rpc_rate --fabric sim:cx4 ") + options + kShortRpcs);
    expect_each_answered_once(result);
    EXPECT_GT(result.at("rate_mops").get<double>(), 0);
  }
}

// Three packets of request and two of response: client and server send three and one, one credit return less than the
// packets of the request, and one response for each request for response: 3 + 1 + 2 + 2 packets.
TEST(RpcRate, SendsThePacketsThatTheProtocolNeeds) {
  const Json result = test::result_of(
      "rpc_rate --fabric sim:cx5 --serve server --batch 1 --outstanding 1 -s 3000 "
      "--response_size 2000 --warmup 50us -D 1ms");
  const Json& client = result.at("clients").at(0).at("result");
  EXPECT_NEAR(count_of(client, "packets_sent") / count_of(client, "answered"), 3 + 1, 0.05);
  EXPECT_NEAR(count_of(client, "packets_received") / count_of(client, "answered"), 2 + 2, 0.05);
}

TEST(RpcRate, SendsLostPacketsAgainAndHandlesNoCallTwice) {
  const TempDir folder;
  for (const double loss : {1e-2, 1e-3}) {
    const std::string lossy = test::changed_cluster(folder, {{"/fabric/loss_probability", loss}}, "cx4");
    const Json result = test::result_of("rpc_rate --fabric " + lossy +
                                        " --machines 3 -s 4000 --response_size 4000 --outstanding 6 --rto 100us "
                                        "--warmup 200us -D 2ms");
    expect_each_answered_once(result);
    EXPECT_GT(count_of(result, "retransmitted"), 0) << loss;
    EXPECT_EQ(count_of(result, "flushes") > 0, true) << loss;
  }
}

// Without control the queue is all credits: 6 * 32 packets of 1106 bytes on the wire, 68 us at 25 Gb/s.
TEST(RpcRate, KeepsTheQueueShortByMarks) {
  const std::string incast =
      "rpc_rate --fabric sim:cx4 --machines 7 --serve server -s 1000000 --response_size 32 --batch 1 --outstanding 1 "
      "--warmup 5ms -D 5ms --cc ";
  const Json none = test::result_of(incast + "none"), dcqcn = test::result_of(incast + "dcqcn");
  const auto mean = [](const Json& result) { return result.at("rtt_mean_ns").get<double>(); };
  EXPECT_LT(mean(dcqcn), 0.8 * mean(none));
  EXPECT_GT(dcqcn.at("rate_mops").get<double>(), 0.9 * none.at("rate_mops").get<double>());
  EXPECT_GT(count_of(dcqcn.at("clients").at(0).at("result"), "limited"), 0);
}

TEST(RpcRate, FailsIfFasstLosesAPacket) {
  const TempDir folder;
  const std::string lossy = test::changed_cluster(folder, {{"/fabric/loss_probability", 1e-3}}, "cx4");
  const test::Ran ran = test::run_program("rpc_rate --rpc fasst --rto 100us --fabric " + lossy + kShortRpcs);
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_THAT(ran.err, HasSubstr("not answered"));
}

// The null device has no peers: the thread plays them. Each call has one packet each way.
TEST(RpcRate, RunsOnTheNullDevice) {
  const std::string command = "rpc_rate --fabric null --machines 5 --batch 16 --outstanding 16 --warmup 0 -n 640 ";
  const Json calling = test::result_of(command + "--serve peers");
  expect_each_answered_once(calling);
  EXPECT_EQ(calling.at("ops"), 640);
  EXPECT_EQ(count_of(calling, "packets_sent"), 640);
  EXPECT_EQ(count_of(calling, "handled"), 0);
  const Json serving = test::result_of(command + "--serve server");
  expect_each_answered_once(serving);
  EXPECT_EQ(count_of(serving, "answered"), 0);
  EXPECT_EQ(count_of(serving, "handled"), count_of(serving, "packets_sent"));
  const Json both = test::result_of(command + "--cc timely");
  expect_each_answered_once(both);
  EXPECT_GT(count_of(both, "answered"), 0);
  EXPECT_GT(count_of(both, "handled"), 0);
}

// Ten threads of each machine call those of the 19 others, and are called: 2 x 190 sessions per thread.
TEST(RpcRate, OpensSessionsBetweenAllThreadsOfManyMachines) {
  const Json result = test::result_of(
      "rpc_rate --fabric sim:cx4 -I 0 --machines 20 --threads 10 --cq_mod 8 --warmup 50us -D 50us --longest 400us");
  expect_each_answered_once(result);
  EXPECT_EQ(result.at("sessions"), 2 * 190);
  EXPECT_GT(result.at("mops_per_machine").get<double>(), 0);
}

// On RoCE v2 the adapter also writes the IPv4 header of each packet: the model counts what the simulator does.
TEST(RpcRate, IsPredictedAsThePcieCountersOfAServerSay) {
  const Json record = test::record_of("rpc_rate --fabric sim:cx4 --serve server --machines 3 --warmup 100us -D 500us");
  const Json& events = record.at("counters").at(0).at("events");
  const Json& predicted = record.at("prediction").at("pcie_per_op");
  const double requests = count_of(record.at("result"), "handled");
  for (const char* key : {"dma_write_partial_lines", "dma_write_full_lines", "tlps_to_host", "bytes_to_host"}) {
    EXPECT_NEAR(events.at(key).get<double>() / requests / predicted.at(key).get<double>(), 1, 0.02) << key;
  }
}

double median_of(const std::string& command) {
  return test::result_of(command).at("lat_p50_ns").get<double>();
}

// Table 2: an RPC takes at most 0.8 us longer than a READ, by figures that are rounded to 0.1 us.
TEST(RpcRate, TakesLittleLongerThanARead) {
  for (const char* cluster : {"cx3", "cx5"}) {
    const std::string fabric = fmt::format(" --fabric sim:{}", cluster);
    const double read = median_of("verb_latency --verb read -s 32 -n 1000" + fabric);
    const double rpc = median_of("rpc_rate --batch 1 --outstanding 1 --warmup 50us -D 1ms" + fabric);
    EXPECT_GT(rpc, read) << cluster;
    EXPECT_LT(rpc, read + 900) << cluster;
  }
}

// The same table: 3.7 us on ConnectX-4 Lx, where no packet is sent inline.
TEST(RpcRate, TakesThePublishedTime) {
  EXPECT_NEAR(median_of("rpc_rate --batch 1 --outstanding 1 -I 0 --warmup 50us -D 1ms --fabric sim:cx4"), 3700, 370);
}

double work_ns(const Json& result, const char* work) {
  return result.at("cpu_ns_per_request").at(work).get<double>();
}

// A thread that is always busy spends all of its time on its requests.
TEST(RpcRate, SplitsTheTimeOfABusyThread) {
  const std::string command = "rpc_rate --fabric sim:cx4 -I 0 --machines 11 --warmup 50us -D 1ms ";
  const Json plain = test::result_of(command);
  double sum = 0;
  for (const char* work : {"receive", "send", "handler", "congestion_control"}) sum += work_ns(plain, work);
  EXPECT_NEAR(sum * plain.at("rate_mops").get<double>() * 1e-3, 1, 0.03);
  // Without the bypass each response changes the rate: 15 ns.
  const Json controlled = test::result_of(command + "--cc timely --bypass_timely off");
  EXPECT_NEAR(work_ns(controlled, "congestion_control"), work_ns(plain, "congestion_control") + 15, 0.5);
  EXPECT_NEAR(work_ns(controlled, "send"), work_ns(plain, "send"), 3);
}

// Section 3.2 of the paper: up to 400 ns. A request and its response each move a cache line of a queue two times, and
// it takes 38 ns.
TEST(RpcRate, HandsRequestsToWorkersInTheTimeOfSomeCacheLines) {
  const std::string idle = "rpc_rate --batch 1 --outstanding 1 -I 0 --warmup 50us -D 1ms --fabric sim:cx4";
  const double extra = median_of(idle + " --handler worker") - median_of(idle);
  EXPECT_GT(extra, 4 * 38);
  EXPECT_LE(extra, 400);
}

// Slow handlers of 20 us: a request waits for those before it, unless workers run them.
TEST(RpcRate, KeepsQuickRequestsQuickByWorkers) {
  const std::string mixed =
      "rpc_rate --fabric sim:cx4 --machines 6 --serve server --handler_ns 20000 --slow_percent 5 --outstanding 3 "
      "--warmup 100us -D 1ms";
  const Json without = test::result_of(mixed), with = test::result_of(mixed + " --handler worker --workers 4");
  expect_each_answered_once(with);
  EXPECT_GT(without.at("quick_p99_ns").get<double>(), 20'000);
  EXPECT_LT(with.at("quick_p99_ns").get<double>(), 6'000);
  EXPECT_GT(with.at("lat_p99_ns").get<double>(), 20'000) << "there were no slow requests";
}

// A request and its response are received by a RECV each. Posted 32 at a time they take 10/32 + 4 ns each, as one
// descriptor of 512 they take 14/512 ns.
TEST(RpcRate, SpendsLittleOnRecvsOfAMultiPacketQueue) {
  const std::string command = "rpc_rate --fabric sim:cx4 -I 0 --machines 11 --warmup 50us -D 1ms";
  const Json on = test::result_of(command), off = test::result_of(command + " --multi_packet_rq off");
  EXPECT_NEAR(work_ns(off, "receive") - work_ns(on, "receive"), 2 * (10.0 / 32 + 4 - 14.0 / 512), 1);
}

TEST(RpcRate, GivesTheSameResultForAnyNumberOfSimulatorThreads) {
  const std::string command =
      "rpc_rate --fabric sim:cx4 --machines 4 -s 3000 --cc timely --handler worker --slow_percent 50" +
      std::string(kShortRpcs);
  const Json one = test::result_of(command + "--sim_threads 1");
  EXPECT_EQ(one, test::result_of(command + "--sim_threads 2"));
}

TEST(RpcRate, RefusesWhatItCannotRun) {
  EXPECT_THAT(test::refusal_of("rpc_rate --fabric sim:cx4 --outstanding 7 --batch 3"),
              AllOf(HasSubstr("--outstanding 7"), HasSubstr("multiple of --batch 3")));
  EXPECT_THAT(test::refusal_of("rpc_rate --fabric sim:cx4 -s 4"), AllOf(HasSubstr("--size 4"), HasSubstr("from 8")));
  EXPECT_THAT(test::refusal_of("rpc_rate --fabric sim:cx4 -c RC"),
              AllOf(HasSubstr("--connection RC"), HasSubstr("UD")));
  EXPECT_THAT(test::refusal_of("rpc_rate --fabric sim:cx5ib --multi_packet_rq on"),
              AllOf(HasSubstr("--multi_packet_rq on"), HasSubstr("raw Ethernet")));
  EXPECT_THAT(test::refusal_of("rpc_rate --fabric sim:cx4 --rpc fasst -s 1009"),
              AllOf(HasSubstr("--size 1009"), HasSubstr("at most 1008")));
  EXPECT_THAT(test::refusal_of("rpc_rate --fabric sim:cx4 --rpc fasst --cc timely"), HasSubstr("--cc"));
  EXPECT_THAT(test::refusal_of("rpc_rate --fabric sim:cx4 --workers 2"),
              AllOf(HasSubstr("--workers 2"), HasSubstr("--handler worker")));
  EXPECT_THAT(test::refusal_of("rpc_rate --fabric sim:cx4 --slow_percent 5"),
              AllOf(HasSubstr("--slow_percent 5"), HasSubstr("--handler_ns")));
  EXPECT_THAT(test::refusal_of("rpc_rate --fabric sim:cx3 --cc dcqcn"),
              AllOf(HasSubstr("--cc dcqcn"), HasSubstr("InfiniBand")));
  EXPECT_THAT(test::refusal_of("rpc_rate --fabric sim:cx4 --machines 20 --rx_depth 64"),
              AllOf(HasSubstr("--rx_depth 64"), HasSubstr("--credits 32")));
  EXPECT_THAT(test::refusal_of("rpc_rate --fabric sim:cx4 --serve peers"), HasSubstr("--fabric null"));
  EXPECT_THAT(test::refusal_of("rpc_rate --fabric null -s 2000"), HasSubstr("one packet, at most 1008 bytes"));
}

}  // namespace
}  // namespace verbscope
