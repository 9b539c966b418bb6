// The limit that `explain` names for RPCs, each in a run where it is right by construction.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/explain.hpp"
#include "common/record.hpp"
#include "tests/microbench/changed_cluster.hpp"
#include "tests/microbench/run_program.hpp"

namespace verbscope {
namespace {

Record record_of(const std::string& command) {
  const TempDir folder;
  const std::string file = folder / "r.jsonl";
  const test::Ran ran = test::run_program(command + " --out_json_file " + file);
  EXPECT_EQ(ran.exit_code, 0) << command << ": " << ran.err;
  return read_results(file).records.at(0);
}

struct LimitCase {
  const char* command;
  Resource limit;
};
class RpcLimits : public testing::TestWithParam<LimitCase> {};

TEST_P(RpcLimits, AreNamed) {
  const Record record = record_of(GetParam().command);
  const Explanation it = explain(record);
  ASSERT_EQ(it.limits.size(), 1u) << it.limit_sentence();
  EXPECT_EQ(it.limits.front().load.resource, GetParam().limit) << it.limit_sentence();
}

// - 60 requests of 32 bytes are always outstanding at a thread, and a port of 25 Gb/s takes twice as many.
// - One packet on its way per round trip of 4 us: a tenth of the port's rate.
// - 17 credits of 256 bytes are a third of what 100 Gb/s move in a round trip, and 64 RECVs are not enough for 34.
// - Without control, five senders have 5 * 32 packets in the queue of the server's port.
// - One thread and 64 clients; with DRAM of 2 us it waits for memory only. Half of the requests for one worker, or one
//   request at a time. 14 threads can do 25 M requests a second, and the adapter takes 21.8 M.
// - A loss costs 5 ms, and a request of 1 MB at a loss of 0.1 % loses a packet or two and takes 0.1 ms without.
// - The leader of three replicas has 1.6 us of work for each PUT, and 64 are outstanding. With one, it waits for
// messages.
INSTANTIATE_TEST_SUITE_P(
    , RpcLimits,
    testing::Values(
        LimitCase{"rpc_rate --fabric sim:cx4 -I 0 --machines 11 --warmup 50us -D 200us", Resource::cpu},
        LimitCase{"rpc_large --fabric sim:cx4 --credits 1 -s 100000", Resource::credits},
        LimitCase{"rpc_large --fabric sim:cx5-100g --packet_size 256 --credits 17 --rx_depth 64 -s 100000",
                  Resource::recv_queue},
        LimitCase{"rpc_incast --fabric sim:cx4 --machines 6 -s 200000 --warmup 500us -D 1ms", Resource::switch_queue},
        LimitCase{"ordered_kv --fabric sim:cx3 --keys 1000 --warmup 50us -D 200us", Resource::cpu},
        LimitCase{"ordered_kv --fabric sim:cx3 --keys 10000 --threads 6 --workers 1 --scans 50 --warmup 50us "
                  "-D 200us",
                  Resource::workers},
        LimitCase{"ordered_kv --fabric sim:cx3 --keys 1000 --threads 4 --workers 1 --clients 1 "
                  "--client_threads 1 --outstanding 1 --warmup 50us -D 200us",
                  Resource::outstanding},
        LimitCase{"ordered_kv --fabric sim:cx3 --uars exclusive --threads 16 --workers 2 --client_threads 8 "
                  "--outstanding 4 --warmup 100us -D 300us",
                  Resource::responder_units},
        LimitCase{"raft_kv --fabric sim:cx5 --clients 4 --threads 2 --outstanding 8", Resource::cpu},
        LimitCase{"raft_kv --fabric sim:cx5", Resource::outstanding},
        LimitCase{"rpc_large --fabric sim:cx5ib --loss 1e-3 -s 1000000 -D 20ms", Resource::timeouts}));

TEST(RpcLimit, IsMemoryIfTheThreadsWaitForIt) {
  const TempDir folder;
  const std::string fabric = test::changed_cluster(folder, {{"/host/dram_ns", 2000}}, "cx3");
  const Record record = record_of("ordered_kv --scans 0 --threads 2 --warmup 50us -D 200us --fabric " + fabric);
  const Explanation it = explain(record);
  ASSERT_EQ(it.limits.size(), 1u) << it.limit_sentence();
  EXPECT_EQ(it.limits.front().load.resource, Resource::dram) << it.limit_sentence();
}

// On a path of 80 us, Timely takes every round trip for a queue, because it is longer than 50 us.
TEST(RpcLimit, IsTheRateLimiterOnALongPath) {
  const TempDir folder;
  const std::string fabric = test::changed_cluster(folder, {{"/fabric/cable_ns", 20'000}}, "cx4");
  const std::string command = "rpc_large --credits 256 -s 1000000 -D 10ms --fabric " + fabric;
  const Record controlled = record_of(command + " --cc timely"), free = record_of(command);
  const Explanation with = explain(controlled), without = explain(free);
  ASSERT_EQ(with.limits.size(), 1u) << with.limit_sentence();
  EXPECT_EQ(with.limits.front().load.resource, Resource::rate_limiter) << with.limit_sentence();
  EXPECT_THAT(without.limit_words(), testing::Not(testing::HasSubstr("rate limiter")));
  EXPECT_GT(without.rate_mops(), with.rate_mops());
}

}  // namespace
}  // namespace verbscope
