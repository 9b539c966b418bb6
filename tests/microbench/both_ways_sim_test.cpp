// Both sides post at once (--bidirectional): the rate is that of both directions, and each is bounded by its wire.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/paths.hpp"
#include "tests/microbench/run_program.hpp"

namespace verbscope {
namespace {

using test::record_of;
using test::refusal_of;
using test::result_of;
using testing::HasSubstr;

class BothWays : public testing::TestWithParam<std::string> {};

// The wire is full-duplex: each direction is limited by its own wire, and large messages fill both, so the sum is more
// than one direction could have.
TEST_P(BothWays, SumExceedsTheWireOfOneDirection) {
  constexpr double kBytes = 65536;
  const double wire_gbit =
      read_json_file(find_config("clusters", "cib")).at("/wire/port_gbit_per_s/value"_json_pointer).get<double>();
  const Json result = result_of(GetParam() + " --fabric sim:cib -i 1 -s 65536 -q 2 -Q 1 -t 8 -b");
  const double out = result.at("rate_out_mops"), in = result.at("rate_in_mops");
  EXPECT_NEAR(result.at("rate_mops").get<double>(), out + in, 1e-9);
  EXPECT_LE(out * kBytes * 8e-3, wire_gbit);
  EXPECT_LE(in * kBytes * 8e-3, wire_gbit);
  EXPECT_GT((out + in) * kBytes * 8e-3, wire_gbit);
  EXPECT_NEAR(result.at("bandwidth_gbit_per_s").get<double>(), (out + in) * kBytes * 8e-3, 0.01);
}

TEST_P(BothWays, AdaptersAndThreadsCountTheSame) {
  const Json record = record_of(GetParam() + " --fabric sim:cib -s 32 -q 2 --threads 2 -b -D 200us");
  const Json& result = record.at("result");
  EXPECT_NEAR(result.at("adapter_mops").get<double>() / result.at("rate_mops").get<double>(), 1, 0.01);
  // Two machines alike do alike.
  EXPECT_NEAR(result.at("rate_out_mops").get<double>() / result.at("rate_in_mops").get<double>(), 1, 0.1);
  EXPECT_EQ(result.at("threads").size(), 4u);
  EXPECT_EQ(record.at("prediction").at("role"), "both ways");
  EXPECT_EQ(record.at("config").at("bidirectional"), true);
}

// The rates of the wire and of PCIe to the host are nearly equal: the side that begins first must not be faster.
TEST_P(BothWays, DirectionsAreEqualIfWireAndPcieAreNearlyEqual) {
  for (const char* seed : {"1", "2", "3"}) {
    const Json result = result_of(GetParam() + " --fabric sim:cib -s 65536 -q 4 -b -t 4 -Q 1 --seed " + seed);
    EXPECT_NEAR(result.at("rate_out_mops").get<double>() / result.at("rate_in_mops").get<double>(), 1, 0.05) << seed;
  }
}

TEST_P(BothWays, ItersCountOnEachSide) {
  const Json result = result_of(GetParam() + " --fabric sim:cib -s 32 -q 2 -b -n 640");
  EXPECT_EQ(result.at("ops"), 2 * 2 * 640);
}

TEST_P(BothWays, IsRefusedWithoutClients) {
  EXPECT_THAT(refusal_of(GetParam() + " --fabric null -b"), HasSubstr("--fabric null has no clients"));
}

INSTANTIATE_TEST_SUITE_P(, BothWays, testing::Values("send_rate", "write_rate", "write_rate -c UC", "read_rate"));

TEST(BothWaysOfSends, EveryMessageArrivesIntact) {
  for (const char* line :
       {"-c RC -s 300", "-c UC -s 32 -I 32 -l 8", "-c RC --header_only", "-c RC -s 64 --wr_api", "-c RC -s 64 -e"}) {
    const Json result =
        result_of(std::string("send_rate --fabric sim:cib -D 200us --warmup 50us -b --validate ") + line);
    EXPECT_GT(result.at("rate_in_mops"), 0) << line;
    EXPECT_EQ(result.at("validation").at("wrong"), 0) << line;
    EXPECT_EQ(result.at("validation").at("checked"), result.at("messages_received")) << line;
    if (std::string(line).find("RC") == std::string::npos) continue;  // a receiver that is late loses messages
    EXPECT_EQ(result.at("lost"), 0) << line;
    // Messages that both sides sent in their intervals are among those that arrived.
    EXPECT_GT(result.at("messages_received"), result.at("ops")) << line;
  }
}

TEST(BothWaysOfReads, ReturnTheBytesOfTheTarget) {
  const Json result = result_of("read_rate --fabric sim:cib -D 200us -b -s 500 --validate");
  EXPECT_EQ(result.at("validation").at("wrong"), 0);
  EXPECT_GT(result.at("validation").at("checked"), 100);
}

TEST(BothWaysOfWrites, HaveOneDriver) {
  EXPECT_THAT(refusal_of("write_rate --fabric sim:cib -b --direction in"), HasSubstr("both sides post"));
  EXPECT_THAT(refusal_of("write_rate --fabric sim:cib -b --write_with_imm"), HasSubstr("not with --bidirectional"));
}

}  // namespace
}  // namespace verbscope
