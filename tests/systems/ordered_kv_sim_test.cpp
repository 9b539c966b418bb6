// ordered_kv as a program on simulated clusters: right answers under every mix, what look-ups cost, and where SCANs
// run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/json.hpp"
#include "tests/microbench/changed_cluster.hpp"
#include "tests/microbench/run_program.hpp"

namespace verbscope {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const std::string kBriefly = " --warmup 50us -D 200us ";

double figure(const Json& result, const char* key) {
  return result.at(key).get<double>();
}
double handler_ns(const Json& result) {
  return result.at("cpu_ns_per_request").at("handler").get<double>();
}

TEST(OrderedKv, AnswersRightUnderEveryMix) {
  for (const char* options :
       {"", "--threads 4 --workers 2 --scans 20",
        "--scans 0 --puts 100 --keys 100 --clients 2 --client_threads 3 --outstanding 8",
        "--gets 30 --scans 30 --puts 40 --threads 3 --workers 1 --keys 500 --scan_length 100 --outstanding 6 --batch 3",
        "--scans 100 --scan_length 700 --keys 1000 --threads 2", "--keys 1",
        "--keys 1 --puts 50 --clients 1 --client_threads 1", "--rpc fasst --puts 10 --threads 2",
        "--threads 2 --workers 1 --scans 10 --puts 10 --loss 1e-3 --rto 100us",
        "--cc timely --preallocate off --zero_copy off --scans 5"}) {
    SCOPED_TRACE(options);
    const bool has_keys = std::string(options).find("--keys") != std::string::npos;
    const Json result = test::result_of("ordered_kv --fabric sim:cx3 " + std::string(has_keys ? "" : "--keys 5000 ") +
                                        options + kBriefly);
    EXPECT_EQ(result.at("unanswered"), 0);
    EXPECT_EQ(result.at("handled_twice"), 0);
    EXPECT_GT(figure(result, "rate_mops"), 0);
    EXPECT_NEAR(figure(result, "get_mops") + figure(result, "scan_mops") + figure(result, "put_mops"),
                figure(result, "rate_mops"), 1e-6);
  }
}

// Threads of clients call those of the server on their own port.
TEST(OrderedKv, UsesThePortsThatTheServerServes) {
  const Json alone = test::record_of("ordered_kv --fabric sim:cib --keys 5000" + kBriefly);
  EXPECT_EQ(alone.at("config").at("client_threads"), 1);
  EXPECT_GT(figure(alone.at("result"), "rate_mops"), 0);
  const Json both = test::record_of("ordered_kv --fabric sim:cib --keys 5000 --threads 2" + kBriefly);
  EXPECT_EQ(both.at("config").at("client_threads"), 4);
  const Json one_port = test::record_of("ordered_kv --fabric sim:cib --keys 5000 --ib_port 2" + kBriefly);
  EXPECT_EQ(one_port.at("config").at("client_threads"), 4);
}

TEST(OrderedKv, DrawsTheMixThatIsAskedFor) {
  const Json result = test::result_of(
      "ordered_kv --fabric sim:cx3 --keys 5000 --gets 60 --scans 10 --puts 30 --threads 4 --warmup 50us -D 1ms");
  const double all = figure(result, "rate_mops");
  EXPECT_NEAR(figure(result, "scan_mops") / all, 0.1, 0.01);
  EXPECT_NEAR(figure(result, "put_mops") / all, 0.3, 0.02);
  EXPECT_GT(figure(result, "scan_p50_ns"), figure(result, "lat_p50_ns"));
}

// One thread on a core of its own: its handlers take the time of the closed form, and their way through the map too.
TEST(OrderedKv, LookUpsTakeTheTimeOfTheClosedForm) {
  const TempDir folder;
  for (const double dram : {90.0, 400.0}) {
    const std::string fabric = test::changed_cluster(folder, {{"/host/dram_ns", dram}}, "cx3");
    const std::string command = "ordered_kv --fabric " + fabric + " --clients 1 --client_threads 2" + kBriefly;
    const Json gets = test::result_of(command + "--scans 0"), scans = test::result_of(command + "--scans 100");
    const Json& model = gets.at("tree").at("model");
    EXPECT_EQ(gets.at("tree").at("dram_levels"), 1);
    EXPECT_EQ(model.at("dram_levels"), 1);
    EXPECT_NEAR(handler_ns(gets), figure(model, "get_ns"), 0.02 * figure(model, "get_ns")) << dram;
    EXPECT_NEAR(handler_ns(scans), figure(model, "scan_ns"), 0.05 * figure(model, "scan_ns")) << dram;
  }
  const Json cached = test::result_of("ordered_kv --fabric sim:cx3 --scans 0 --keys 500000 --clients 1" + kBriefly);
  EXPECT_EQ(cached.at("tree").at("dram_levels"), 0);
}

// Two threads of a core are slower at work, and wait for memory as before: (get_ns - dram) / 0.65 + dram.
TEST(OrderedKv, HyperThreadsTakeLongerToWork) {
  const Json alone = test::result_of("ordered_kv --fabric sim:cx3 --scans 0 --threads 8" + kBriefly);
  const Json shared = test::result_of("ordered_kv --fabric sim:cx3 --scans 0 --threads 16" + kBriefly);
  EXPECT_NEAR(handler_ns(shared), (handler_ns(alone) - 90) / 0.65 + 90, 2);
  EXPECT_THAT(test::refusal_of("ordered_kv --fabric sim:cx3 --threads 17"),
              AllOf(HasSubstr("--threads 17"), HasSubstr("16 cores")));
}

// Long SCANs: a GET waits for those before it, unless workers run them. The server has as many threads.
TEST(OrderedKv, WorkersKeepGetsQuick) {
  const std::string command =
      "ordered_kv --fabric sim:cx3 --threads 8 --scans 2 --scan_length 2000 --client_threads 2 --warmup 100us -D 1ms ";
  const Json dispatch = test::result_of(command + "--workers 0"), workers = test::result_of(command + "--workers 3");
  EXPECT_GT(figure(dispatch, "lat_p99_ns"), 1.5 * figure(workers, "lat_p99_ns"));
  EXPECT_GT(figure(workers, "workers_busy_share"), 0.1);
  EXPECT_GT(figure(workers, "worker_wait_samples"), 0);
  EXPECT_FALSE(dispatch.contains("worker_wait_samples"));
}

TEST(OrderedKv, GivesTheSameResultForAnyNumberOfSimulatorThreads) {
  const std::string command =
      "ordered_kv --fabric sim:cx3 --threads 4 --workers 2 --scans 10 --puts 20 --keys 2000 --clients 3" + kBriefly;
  const Json one = test::result_of(command);
  EXPECT_EQ(one, test::result_of(command));
  EXPECT_EQ(one, test::result_of(command + "--sim_threads 2"));
}

TEST(OrderedKv, ServesPlayedClientsOnTheNullDevice) {
  const Json result = test::result_of(
      "ordered_kv --fabric null --keys 1000 --scans 5 --puts 5 --clients 4 --client_threads 2 --warmup 0 -n 640");
  EXPECT_EQ(result.at("rpc").at("handled"), result.at("rpc").at("packets_sent"));
  EXPECT_EQ(result.at("handled_twice"), 0);
}

TEST(OrderedKv, RefusesWhatItCannotRun) {
  const auto refusal = [](const std::string& options) {
    return test::refusal_of("ordered_kv --fabric sim:cx3 " + options);
  };
  EXPECT_THAT(refusal("--scans 60 --puts 50"), AllOf(HasSubstr("--scans 60 --puts 50"), HasSubstr("100 %")));
  EXPECT_THAT(refusal("--gets 50 --scans 60"), AllOf(HasSubstr("--gets 50"), HasSubstr("100 % together")));
  EXPECT_THAT(refusal("--workers 2 --threads 2"), AllOf(HasSubstr("--workers 2"), HasSubstr("--threads 2")));
  EXPECT_THAT(refusal("-s 64"), AllOf(HasSubstr("--size 64"), HasSubstr("32 bytes")));
  EXPECT_THAT(refusal("--keys 5 --puts 1"), AllOf(HasSubstr("--keys 5"), HasSubstr("32 client threads")));
  EXPECT_THAT(refusal("--rpc fasst --threads 2 --workers 1"), AllOf(HasSubstr("--workers 1"), HasSubstr("fasst")));
  EXPECT_THAT(refusal("--scan_length 0"), HasSubstr("--scan_length"));
  EXPECT_THAT(test::refusal_of("ordered_kv --fabric sim:cib --client_threads 2"),
              AllOf(HasSubstr("--client_threads 2"), HasSubstr("port"), HasSubstr("--threads 2 or more")));
  EXPECT_THAT(test::refusal_of("ordered_kv --fabric null --threads 2 --workers 1"),
              AllOf(HasSubstr("--workers 1"), HasSubstr("null")));
}

}  // namespace
}  // namespace verbscope
