// read_chain as a program on simulated clusters: the worked example of docs/writing-a-benchmark.md.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/microbench/run_program.hpp"

namespace verbscope {
namespace {

using test::refusal_of;
using test::result_of;
using testing::HasSubstr;

TEST(ReadChain, ReadsTheNextRecordOfTheChain) {
  for (const char* options :
       {"--hops 1", "--hops 5 --records 7 -s 16", "--hops 2 -s 300 -q 6 --clients 3 --threads 2", "--wr_api", "-e"}) {
    const Json result =
        result_of(std::string("read_chain --fabric sim:cib -D 100us --warmup 20us --validate ") + options);
    EXPECT_GT(result.at("validation").at("checked").get<int>(), 0) << options;
    EXPECT_EQ(result.at("validation").at("wrong"), 0) << options;
    EXPECT_GT(result.at("lat_samples").get<int>(), 0) << options;
  }
}

TEST(ReadChain, TakesARoundTripPerHop) {
  // verb_latency times the same READ from the other side.
  const double trip =
      result_of("verb_latency --fabric sim:cib --verb read -s 64 -D 2ms --warmup 100us").at("lat_p50_ns").get<double>();
  for (const int hops : {1, 3, 8}) {
    const Json result = result_of("read_chain --fabric sim:cib -q 1 -D 500us --hops " + std::to_string(hops));
    EXPECT_NEAR(result.at("lat_p50_ns").get<double>(), hops * trip, 0.05 * hops * trip) << hops;
  }
}

TEST(ReadChain, RefusesARecordWithoutRoomForItsHead) {
  EXPECT_THAT(refusal_of("read_chain --fabric sim:cib -s 8"), HasSubstr("--size 8"));
}

}  // namespace
}  // namespace verbscope
