// echo_rate as a program on simulated clusters.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/microbench/changed_cluster.hpp"
#include "tests/microbench/run_program.hpp"

namespace verbscope {
namespace {

using test::refusal_of;
using test::result_of;
using testing::HasSubstr;

class EchoOf : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(, EchoOf, testing::Values("write_write", "write_send", "send_send"));

TEST_P(EchoOf, AnswersEveryRequestWithItsBytes) {
  for (const char* options :
       {"", "-s 8 --window 1 -q 1", "-l 16 --window 32 -I 60", "-l 5 --threads 3 -q 2 --work_ns 300",
        "-s 200 -q 3 --threads 2 --clients 2 --window 7", "--optimise none", "--optimise unreliable",
        "--optimise unsignaled", "--optimise inline --clients 2 -q 2 --client_threads 2",
        "--wr_api -l 4 -t 4 -q 2 --window 9"}) {
    const Json result =
        result_of("echo_rate --fabric sim:cib -D 100us --warmup 30us --validate --mode " + GetParam() + " " + options);
    EXPECT_EQ(result.value("lost", -1), 0) << options;
    EXPECT_GT(result.value("rate_mops", 0.0), 0.1) << options;
    EXPECT_EQ(result.at("validation").value("wrong", -1), 0) << options;
  }
}

TEST_P(EchoOf, ContinuesAfterLossOnAnUnreliableTransport) {
  // A lost message costs one place of the window for about one round trip: next to nothing.
  const TempDir folder;
  const std::string lossy = test::changed_cluster(folder, {{"/fabric/loss_probability", 0.001}});
  for (const std::string connection : {"RC", "UC", "UD"}) {
    if (connection == "UD" && GetParam() != "send_send") continue;   // WRITEs need a connection
    if (connection == "RC" && GetParam() != "write_send") continue;  // loses nothing
    const std::string options = " -D 10ms --clients 1 --validate --mode " + GetParam() + " -c " + connection;
    const Json whole = result_of("echo_rate --fabric sim:cib" + options);
    const Json result = result_of("echo_rate --fabric " + lossy + options);
    EXPECT_GT(result.at("lost").get<int>(), 10) << options;
    EXPECT_GT(result.at("rate_mops").get<double>(), 0.9 * whole.at("rate_mops").get<double>()) << options;
  }
}

TEST(EchoRate, GivesUpALostRequestWithoutOtherOutstandingRequests) {
  const TempDir folder;
  const std::string lossy = test::changed_cluster(folder, {{"/fabric/loss_probability", 0.01}});
  for (const char* options : {"--mode send_send -c UD", "--mode write_write -c UC", "--mode write_send -c UC"}) {
    const Json result = result_of("echo_rate --window 1 -q 1 --clients 1 -D 20ms --fabric " + lossy + " " + options);
    // One echo of fifty takes 1 ms instead of 2 us: 20 ms have room for about twenty times fifty.
    EXPECT_GT(result.at("lost").get<int>(), 5) << options;
    EXPECT_GT(result.at("ops").get<int>(), 250) << options;
  }
}

TEST(EchoRate, EachOptimisationIncludesThoseBeforeIt) {
  const auto config = [](const std::string& level) {
    const test::Ran ran = test::run_program("echo_rate --fabric sim:cib -D 20us --warmup 10us --optimise " + level +
                                            " --out_json_file -");
    const Json all = parse_json_text(ran.out, level).at("config");
    return Json{all.at("connection"), all.at("cq_mod"), all.at("inlined")};
  };
  EXPECT_EQ(config("none"), Json({"RC", 1, false}));
  EXPECT_EQ(config("unreliable"), Json({"UC", 1, false}));
  EXPECT_EQ(config("unsignaled"), Json({"UC", 64, false}));
  EXPECT_EQ(config("inline"), Json({"UC", 64, true}));
  EXPECT_EQ(config("inline -c RC -I 0 -Q 1"), Json({"RC", 1, false}));  // what is given stays
}

TEST(EchoRate, AWindowOfOneRunsAtOneEchoPerRoundTrip) {
  // verb_latency measures the same round trip from the other side.
  const double trip =
      result_of("verb_latency --fabric sim:cib -D 2ms --warmup 100us --verb echo -s 32").at("lat_p50_ns").get<double>();
  const Json result = result_of("echo_rate --fabric sim:cib --optimise inline --window 1 -q 1 -D 200us");
  EXPECT_NEAR(result.at("rate_mops").get<double>(), 1e3 / trip, 0.1 * 1e3 / trip);
  // One request at a time: what it takes is the time from one to the next.
  EXPECT_NEAR(result.at("lat_mean_ns").get<double>(), 1e3 / result.at("rate_mops").get<double>(), 0.05 * trip);
}

TEST_P(EchoOf, LatencyIsOutstandingRequestsOverRate) {
  // Little's law: 4 x 16 requests are outstanding all the time.
  const Json result =
      result_of("echo_rate --fabric sim:cib -q 4 --clients 4 --work_ns 500 -D 300us --mode " + GetParam());
  EXPECT_NEAR(result.at("lat_mean_ns").get<double>(), 4 * 16 * 1e3 / result.at("rate_mops").get<double>(),
              0.03 * result.at("lat_mean_ns").get<double>());
  EXPECT_LE(result.at("lat_p50_ns").get<double>(), result.at("lat_p99_ns").get<double>());
}

TEST_P(EchoOf, WorkPerRequestLimitsTheRate) {
  // A thread that computes for 1 us has no time for more than a million requests a second, and little for anything
  // else.
  for (const char* list : {"", " -l 16"}) {
    const Json free = result_of("echo_rate --fabric sim:cib -I 60 -D 300us --mode " + GetParam() + list);
    const Json busy = result_of("echo_rate --fabric sim:cib -I 60 -D 300us --work_ns 1000 --mode " + GetParam() + list);
    const double work_ns = 1e3 / busy.at("rate_mops").get<double>() - 1e3 / free.at("rate_mops").get<double>();
    EXPECT_NEAR(work_ns, 1000, 50) << list;
  }
}

TEST_P(EchoOf, PostsListsOfUpToPostListPerDoorbell) {
  // Requests by SEND on connected QPs come from one client after another, and leave a list nothing to collect.
  const std::string command =
      "echo_rate --fabric sim:cib -I 60 -D 300us --mode " + GetParam() + (GetParam() == "send_send" ? " -c UD" : "");
  const Json one = result_of(command), lists = result_of(command + " -l 16");
  EXPECT_EQ(one.at("answers_per_post").at("max"), 1);
  EXPECT_EQ(lists.at("answers_per_post").at("max"), 16);
  // A thread that is behind finds whole lists, and saves what a doorbell costs it.
  EXPECT_GT(lists.at("answers_per_post").at("mean").get<double>(), 8);
  EXPECT_GT(lists.at("rate_mops").get<double>(), 1.1 * one.at("rate_mops").get<double>());
}

TEST(EchoRate, DefaultClientsMakeTheServerTheLimit) {
  // With half the clients the rate is the same, whatever the server's threads.
  for (const char* options : {"--mode write_write -c UC -I 60", "--mode write_send -c UC -I 60 -l 16 --threads 8",
                              "--mode send_send -c UD -I 60 -l 16 --threads 4"}) {
    const std::string command = std::string("echo_rate --fabric sim:cib -D 200us ") + options;
    const double usual = result_of(command).at("rate_mops"), fewer = result_of(command + " --window 8").at("rate_mops");
    EXPECT_NEAR(fewer, usual, 0.05 * usual) << options;
  }
}

TEST(EchoRate, RejectsInvalidOptions) {
  EXPECT_THAT(refusal_of("echo_rate --fabric sim:cib -s 4"), HasSubstr("--size 4"));
  EXPECT_THAT(refusal_of("echo_rate --fabric sim:cib -c UD"), HasSubstr("--connection UD"));
  EXPECT_THAT(refusal_of("echo_rate --fabric sim:cib -l 300 -t 1000"), HasSubstr("--post_list 300"));
  EXPECT_THAT(refusal_of("echo_rate --fabric sim:cib -e"), HasSubstr("--events"));
}

}  // namespace
}  // namespace verbscope
