// --sim_threads: every benchmark finds the same with several threads of this machine as with one, and shares nothing
// between them (under ThreadSanitizer).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/microbench/run_program.hpp"

namespace verbscope {
namespace {

using test::record_of;
using testing::HasSubstr;

class SimThreads : public testing::TestWithParam<const char*> {};

TEST_P(SimThreads, DoNotChangeTheRecord) {
  Json by_one = record_of(GetParam() + std::string(" --fabric sim:cib --sim_threads 1"));
  Json by_three = record_of(GetParam() + std::string(" --fabric sim:cib --sim_threads 3"));
  for (Json* record : {&by_one, &by_three}) record->erase("environment");  // command line and time of day
  ASSERT_TRUE(by_one.contains("counters"));
  EXPECT_EQ(by_three, by_one);
}

INSTANTIATE_TEST_SUITE_P(
    , SimThreads,
    testing::Values("send_rate -c UD -s 60 -I 60 -l 16 --clients 3 --validate", "send_rate -c RC -e -q 2 --clients 2",
                    "recv_rate -c UD -s 32 --clients 3 --validate", "recv_rate -c RC --srq -q 2 --clients 2",
                    "write_rate -c UC --direction in -q 4 --clients 4 --validate", "write_rate -c RC -q 2 --clients 2",
                    "read_rate -q 4 --clients 4 --wr_api", "read_rate --direction in --clients 5 -q 5",
                    "wqe_cache --window 8 --threads 4", "qp_scaling --connections 200",
                    "verb_latency --verb echo -D 2ms", "verb_latency --verb fetch_add -D 2ms",
                    "atomic_rate -Z 100 -q 3 --clients 3", "atomic_rate --probe_slots", "echo_rate -q 3 --clients 3",
                    "echo_rate --mode send_send -q 2 --clients 2", "write_visibility -s 64 -D 1ms",
                    "sequencer --design herd --threads 4", "sequencer --design spec --batching",
                    "sequencer --design atomic", "kv_atomic --keys 64", "kv_atomic --emulate --keys 1024",
                    "kv_rate --threads 4 --clients 3 --keys 1000 --put_percent 50",
                    "kv_rate --batching --requests send --clients 3 --keys 1000", "rpc_rate --machines 3",
                    "rpc_rate --serve server --machines 3 -s 3000",
                    "rpc_incast -s 20000 --machines 4 --background 3000",
                    "ordered_kv --threads 3 --workers 1 --clients 3 --keys 1000 --scans 10 --puts 10"));

TEST(SimThreadsOption, IsRefusedWithoutASimulation) {
  EXPECT_THAT(test::refusal_of("send_rate --fabric null --sim_threads 2"),
              AllOf(HasSubstr("--sim_threads 2"), HasSubstr("not null")));
  EXPECT_THAT(test::refusal_of("send_rate --fabric sim:cib --sim_threads 0"), HasSubstr("--sim_threads"));
}

}  // namespace
}  // namespace verbscope
