// WRITEs with an immediate (--write_with_imm): each uses up a RECV of its target, and its bytes arrive.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "tests/microbench/run_program.hpp"

namespace verbscope {
namespace {

using test::record_of;
using test::refusal_of;
using test::result_of;
using testing::HasSubstr;

class Immediates : public testing::TestWithParam<std::string> {};

TEST_P(Immediates, EachConsumesARecvAndItsBytesArrive) {
  const std::string run =
      "write_rate --fabric sim:cib -D 200us --warmup 50us --write_with_imm --validate " + GetParam();
  const Json result = result_of(run);
  EXPECT_GT(result.at("messages_received"), result.at("ops"));
  EXPECT_EQ(result.at("lost"), 0);
  EXPECT_GT(result.at("validation").at("checked"), 10);
  EXPECT_EQ(result.at("validation").at("wrong"), 0);
}

INSTANTIATE_TEST_SUITE_P(, Immediates,
                         testing::Values("-s 64", "-s 5000 -q 2", "-s 32 -I 32 -l 8", "--direction in -q 2",
                                         "--wr_api -s 200", "-e --direction in"));

// By hand: without an immediate the target's adapter writes a payload of 64 bytes, one full line. With an immediate it
// also writes a CQE of 64 bytes, and reads a RECV of 16 bytes; it reads several RECVs at once.
TEST(ImmediatesCost, ACqeAndAShareOfARecvFetch) {
  const auto lines = [](const std::string& options) {
    const Json record = record_of("write_rate --fabric sim:cib --direction in -s 64 " + options);
    const Json& events = record.at("counters")[0].at("events");
    const double ops = record.at("result").at("window_ops");
    const auto per_op = [&](const char* name) { return events.at(name).get<double>() / ops; };
    return std::array{per_op("dma_write_full_lines") + per_op("dma_write_partial_lines"), per_op("dma_read_lines")};
  };
  const auto plain = lines(""), with = lines("--write_with_imm");
  EXPECT_NEAR(plain[0], 1, 0.02);
  EXPECT_NEAR(plain[1], 0, 0.02);
  EXPECT_NEAR(with[0], 2, 0.02);
  EXPECT_GT(with[1], 0.2);
  EXPECT_LE(with[1], 1.02);
}

TEST(ImmediatesInTheModel, AgreeWithTheCounters) {
  for (const char* direction : {"in", "out"}) {
    const Json record =
        record_of(std::string("write_rate --fabric sim:cib -s 64 --write_with_imm --direction ") + direction);
    const double ops = record.at("result").at("window_ops");
    const double counted = record.at("counters")[0].at("events").at("dma_read_lines").get<double>() / ops;
    const double modelled = record.at("prediction").at("pcie_per_op").at("dma_read_lines");
    EXPECT_NEAR(counted, modelled, 0.02 * std::max(1.0, modelled)) << direction;
  }
}

TEST(ImmediatesAre, RefusedIfTheTargetCannotReceiveThem) {
  const std::string run = "write_rate --fabric sim:cib --write_with_imm ";
  EXPECT_THAT(refusal_of(run + "--wait all --window 4"), HasSubstr("not with --wait all"));
  EXPECT_THAT(refusal_of(run + "--header_only"), HasSubstr("--header_only"));
}

}  // namespace
}  // namespace verbscope
