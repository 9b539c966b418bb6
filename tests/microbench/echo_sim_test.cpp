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
  for (const char* options : {"", "-s 8 --window 1", "-s 200 -q 3 --threads 2 --clients 2 --window 7",
                              "--optimise none", "--optimise unreliable", "--optimise unsignaled",
                              "--optimise inline --clients 2 -q 2 --client_threads 2", "--wr_api -t 4 --window 9"}) {
    const Json result =
        result_of("echo_rate --fabric sim:cib -D 100us --warmup 30us --validate --mode " + GetParam() + " " + options);
    EXPECT_EQ(result.value("lost", -1), 0) << options;
    EXPECT_GT(result.value("rate_mops", 0.0), 0.1) << options;
    EXPECT_EQ(result.at("validation").value("wrong", -1), 0) << options;
  }
}

TEST_P(EchoOf, LosesMessagesAndGoesOnWhereTheyMayBeLost) {
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

TEST(EchoRate, ALostRequestIsGivenUpAlsoWhenNoOtherIsOutstanding) {
  const TempDir folder;
  const std::string lossy = test::changed_cluster(folder, {{"/fabric/loss_probability", 0.01}});
  for (const char* options : {"--mode send_send -c UD", "--mode write_write -c UC", "--mode write_send -c UC"}) {
    const Json result = result_of("echo_rate --window 1 --client_threads 1 -D 20ms --fabric " + lossy + " " + options);
    // One echo of fifty takes 1 ms instead of 2 us: 20 ms have room for about twenty times fifty.
    EXPECT_GT(result.at("lost").get<int>(), 5) << options;
    EXPECT_GT(result.at("ops").get<int>(), 250) << options;
  }
}

TEST(EchoRate, EachOptimisationHasThoseBeforeIt) {
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
  const double rate =
      result_of("echo_rate --fabric sim:cib --optimise inline --window 1 --client_threads 1 -D 200us").at("rate_mops");
  EXPECT_NEAR(rate, 1e3 / trip, 0.1 * 1e3 / trip);
}

TEST(EchoRate, RefusesWhatMakesNoSense) {
  EXPECT_THAT(refusal_of("echo_rate --fabric sim:cib -s 4"), HasSubstr("--size 4"));
  EXPECT_THAT(refusal_of("echo_rate --fabric sim:cib -c UD"), HasSubstr("--connection UD"));
  EXPECT_THAT(refusal_of("echo_rate --fabric sim:cib -e"), HasSubstr("--events"));
}

}  // namespace
}  // namespace verbscope
