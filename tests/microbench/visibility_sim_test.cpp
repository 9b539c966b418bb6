// write_visibility as a program on simulated clusters.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/microbench/run_program.hpp"

namespace verbscope {
namespace {

using test::result_of;
using testing::HasSubstr;

TEST(WriteVisibility, BytesOfASimulatedWriteAreVisibleFromLeftToRight) {
  const Json result = result_of("write_visibility --fabric sim:cib -D 2ms");
  EXPECT_GT(result.at("order").at("boundaries_seen").get<int>(), 100);
  EXPECT_EQ(result.at("order").at("out_of_order"), 0);
  EXPECT_GT(result.at("after_write").at("told").get<int>(), 50);
  EXPECT_EQ(result.at("after_write").at("not_visible"), 0);
  EXPECT_EQ(result.at("after_write_read").at("not_visible"), 0);
}

TEST(WriteVisibility, AReadBehindAWriteCostsLessThanAReadAlone) {
  const Json result = result_of("write_visibility --fabric sim:cib -s 64 -D 2ms");
  const double more = result.at("write_read_lat_p50_ns").get<double>() - result.at("write_lat_p50_ns").get<double>();
  EXPECT_GT(more, 0);
  const Json read = result_of("verb_latency --fabric sim:cib -D 2ms --warmup 100us --verb read -s 8");
  EXPECT_LT(more, read.at("lat_p50_ns").get<double>());  // the two overlap
}

TEST(WriteVisibility, PrintsCountsAndPasses) {
  const test::Ran ran = test::run_program("write_visibility --fabric sim:cib -D 1ms");
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_THAT(ran.out, testing::ContainsRegex(
                           "order: 0 of [0-9]+ boundaries within a WRITE were out of order, in [0-9]+ passes"));
  EXPECT_THAT(ran.out, testing::ContainsRegex("completed WRITEs: 0 of [0-9]+ not yet visible"));
}

TEST(WriteVisibility, PrintsIfAKindHasNoSample) {
  const test::Ran ran = test::run_program("write_visibility --fabric sim:cx3 -n 1");  // one of the two kinds
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("no sample"));
  EXPECT_THAT(ran.out, testing::Not(HasSubstr("us more")));
}

}  // namespace
}  // namespace verbscope
