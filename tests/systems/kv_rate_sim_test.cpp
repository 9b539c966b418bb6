// kv_rate as a program on simulated clusters: that every value is right and every PUT executed once, and that what the
// papers reason out (Kalia et al., SIGCOMM 2014, sections 4 and 5; ATC 2016, section 4.3.1) comes about.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/json.hpp"
#include "tests/microbench/changed_cluster.hpp"
#include "tests/microbench/run_program.hpp"
#include "tests/systems/store_results.hpp"

namespace verbscope {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr const char* kFewClients = " --clients 2 --client_threads 3 --warmup 20us -D 60us ";
constexpr const char* kSmallStore = " --clients 2 --client_threads 3 --keys 5000 --warmup 20us -D 60us ";
constexpr const char* kLoadedStore = " --uars exclusive --keys 20000 --warmup 50us -D 200us ";

Json herd_record(const std::string& options) {
  return test::record_of("kv_rate --store herd " + options);
}
Json herd_result(const std::string& options) {
  return herd_record("--fabric sim:cx3 " + options).at("result");
}
double store_mops(const Json& result) {
  return result.at("rate_mops").get<double>();
}

TEST(KvHerd, ReturnsRightValuesWithEveryOption) {
  for (const char* options : {"",
                              "--prefetch off",
                              "--prefetch batch",
                              "--batching",
                              "--batching --prefetch off --threads 3 -q 2",
                              "--requests send",
                              "--requests send --batching -q 2 --threads 2",
                              "--put_percent 0",
                              "--put_percent 100",
                              "-s 4 --put_percent 50",
                              "-s 7 --put_percent 50",
                              "-s 13 --put_percent 50",
                              "-s 1000 --put_percent 50",
                              "-s 1000 --put_percent 50 --requests send",
                              "-I 0 --put_percent 50",
                              "--window 1",
                              "--window 16 -t 16 --max_batch 4 --batching",
                              "--zipf 0.99 --put_percent 50",
                              "--zipf 1",
                              "--wr_api --batching"}) {
    const Json result = herd_result(options + std::string(kSmallStore));
    test::expect_right_values(result, options);
    EXPECT_EQ(test::count_of(result, "retries"), 0u) << options;
    EXPECT_GT(test::count_of(result, "get_lat_samples") + test::count_of(result, "put_lat_samples"), 0u) << options;
  }
  test::expect_right_values(herd_result("--keys 1 --put_percent 50" + std::string(kFewClients)), "one key");
}

TEST(KvHerd, RunsOnTheOtherClustersToo) {
  for (const char* cluster : {"cib", "cx"}) {
    const std::string options = std::string("--fabric sim:") + cluster + " --batching --put_percent 50" + kSmallStore;
    test::expect_right_values(herd_record(options).at("result"), options);
  }
}

TEST(KvHerd, OneClientIsServedExactly) {
  const Json result =
      herd_result("--clients 1 --client_threads 1 --window 1 --keys 50 --put_percent 50 -n 500 --warmup 5us");
  test::expect_right_values(result, "one client");
  EXPECT_EQ(test::count_of(result, "ops"), 500u);
  // Half of the GETs come after a PUT of this client that it remembers: of 50 keys each is PUT five times.
  EXPECT_GT(test::count_of(result.at("checks"), "own_puts"), 100u);
  EXPECT_EQ(test::count_of(result, "misses"), 0u);
}

// Half of the queue is as much as the pipeline and one more request need.
TEST(KvHerd, ServesWithTheShortestQueuesToo) {
  EXPECT_GT(test::count_of(herd_result("-t 6" + std::string(kSmallStore)), "gets"), 0u);
  EXPECT_GT(test::count_of(herd_result("-t 18 --accesses 8" + std::string(kFewClients)), "gets"), 0u);
}

TEST(KvHerd, MeasuresExactlyTheRequestedOperations) {
  for (const char* way : {"", "--batching", "--requests send"}) {
    const Json result = herd_result(std::string("--clients 2 --client_threads 2 -n 300 --warmup 5us ") + way);
    EXPECT_EQ(test::count_of(result, "ops"), 4u * 300) << way;
  }
}

TEST(KvHerd, TheSameSeedGivesTheSameRecord) {
  const std::string options = std::string("--threads 2 --put_percent 50 --zipf 0.99") + kSmallStore;
  EXPECT_EQ(herd_result(options), herd_result(options));
}

// One packet of twenty is dropped.
TEST(KvHerd, WithLossExecutesEveryPutOnceAndFinishes) {
  const TempDir folder;
  const std::string cluster = test::changed_cluster(folder, {{"/fabric/loss_probability", 0.05}});
  for (const char* way : {"", "--prefetch off --zipf 0.99", "--batching --threads 2 -q 2", "--window 16 -s 500",
                          "--requests send --window 2"}) {
    const Json record =
        herd_record("--fabric " + cluster + " --clients 2 --client_threads 5 --keys 100 --put_percent 50 " +
                    "--warmup 50us -D 2ms --retry_after 30us " + way);
    EXPECT_EQ(record.at("status"), "ok") << way;
    const Json& result = record.at("result");
    test::expect_right_values(result, way);
    // Of 1000 requests about 95 are lost, or their responses.
    EXPECT_GT(test::count_of(result, "gets") + test::count_of(result, "puts"), 1000u) << way;
    EXPECT_GT(test::count_of(result, "retries"), 50u) << way;
    EXPECT_GT(test::count_of(result.at("checks"), "own_puts"), 100u) << way;
    // A request is asked for again after 30 us; six in a row are lost with a chance of 10^-6.
    EXPECT_LT(result.at("get_lat_max_ns").get<double>(), way == std::string("--requests send --window 2") ? 1e6 : 500e3)
        << way;
  }
}

// 51 clients have 204 requests under way, for which two threads have four places each: requests wait at the server, and
// none is dropped.
TEST(KvHerd, BySendARequestWaitsForRoomForItsResponse) {
  const Json result = herd_result("--requests send --threads 2 --tx_depth 4 --keys 20000 --warmup 50us -D 200us");
  test::expect_right_values(result, "send");
  EXPECT_EQ(test::count_of(result, "retries"), 0u);
  EXPECT_GT(test::count_of(result.at("workers"), "blocked"), 0u);
}

// 17 machines of three threads, four requests each.
TEST(KvHerd, TheErrorNamesTooFewRecvs) {
  const test::Ran ran = test::run_program(
      "kv_rate --fabric sim:cx3 --store herd --requests send --rx_depth 16 --keys 20000 -D 200us --longest 2ms");
  EXPECT_EQ(ran.exit_code, 1) << ran.out;
  EXPECT_THAT(ran.err, testing::AllOf(HasSubstr("204 requests"), HasSubstr("16 RECVs"), HasSubstr("--rx_depth")));
}

// A log for a tenth of the keys, and a bucket for a hundred: the cache loses by both, and what it loses is not found.
TEST(KvHerd, GetsMissOnlyKeysThatTheCacheEvicted) {
  const Json by_log = herd_result("--log 65536 --put_percent 20" + std::string(kSmallStore));
  test::expect_right_values(by_log, "log");
  EXPECT_GT(test::count_of(by_log.at("evictions"), "log"), 0u);
  EXPECT_GT(test::count_of(by_log.at("failed_gets"), "log_lost") + test::count_of(by_log.at("failed_gets"), "no_slot"),
            0u);
  EXPECT_EQ(test::count_of(by_log.at("failed_gets"), "never_lost"), 0u);
  EXPECT_GT(by_log.at("get_miss_share").get<double>(), 0.5);  // 65536 / 56 of 5000 are left
  const Json by_index = herd_result("--buckets 64" + std::string(kSmallStore));
  test::expect_right_values(by_index, "index");
  EXPECT_GT(test::count_of(by_index.at("evictions"), "index"), 4000u);  // 512 slots for 5000 keys
  EXPECT_GT(by_index.at("get_miss_share").get<double>(), 0.8);
  const Json enough = herd_result(kSmallStore);
  EXPECT_EQ(test::count_of(enough.at("evictions"), "log"), 0u);
  EXPECT_LT(enough.at("get_miss_share").get<double>(), 0.01);
}

// Without prefetching a request waits for two lines of 90 ns after a post of 90 ns (two lines of write combining). The
// pipeline waits while it posts. A batch waits for 32 buckets, then for 32 items, ten at a time: 18 ns a request.
TEST(KvHerd, PrefetchingHidesTheLatencyOfMemory) {
  const std::string one = std::string("--threads 1 ") + kLoadedStore;
  const double off = store_mops(herd_result(one + "--prefetch off")), pipeline = store_mops(herd_result(one)),
               batch = store_mops(herd_result(one + "--prefetch batch"));
  EXPECT_LT(off, 1e3 / (3 * 90));
  EXPECT_GT(pipeline, 2 * off);
  EXPECT_GT(batch, 1.8 * off);
}

TEST(KvHerd, RatesOfAllMixesAreAlike) {
  const std::string six = std::string("--threads 6 ") + kLoadedStore;
  const double few = store_mops(herd_result(six)), half = store_mops(herd_result(six + "--put_percent 50"));
  EXPECT_NEAR(half / few, 1, 0.1);  // SIGCOMM 2014, Figure 9
}

TEST(KvHerd, BatchesShareADoorbell) {
  const Json batched = herd_result("--threads 2 --batching -q 2" + std::string(kLoadedStore));
  EXPECT_GT(batched.at("answers_per_post").at("mean").get<double>(), 2);
  EXPECT_LE(batched.at("answers_per_post").at("max").get<int>(), 32);
  EXPECT_EQ(batched.at("workers").at("no_ops"), 0);
  const Json single = herd_result("--threads 2" + std::string(kLoadedStore));
  EXPECT_EQ(single.at("answers_per_post").at("max"), 1);
}

// The most popular key has a thirteenth of all requests (1 / (ln 20000 + 0.577), nearly), its thread as much more than
// a sixth of the others.
TEST(KvHerd, ASkewedLoadReachesTheThreadsThatOwnItsKeys) {
  const Json served = herd_result("--threads 6 --zipf 0.99" + std::string(kLoadedStore)).at("workers").at("served");
  ASSERT_EQ(served.size(), 6u);
  double sum = 0, most = 0;
  for (const Json& each : served) {
    sum += each.get<double>();
    most = std::max(most, each.get<double>());
  }
  EXPECT_GT(most / sum, 1.15 / 6);
  EXPECT_LT(most / sum, 2.0 / 6);
}

// A server that nobody loads: pushes itself through the pipeline by no-ops.
TEST(KvHerd, NoOpsFinishTheLastRequestsOfThePipeline) {
  const Json result = herd_result("--clients 1 --client_threads 1 --window 1 --warmup 20us -D 60us --keys 100");
  test::expect_right_values(result, "alone");
  // Two for each request.
  EXPECT_NEAR(result.at("workers").at("no_ops").get<double>(), 2 * result.at("workers").at("served")[0].get<double>(),
              3);
}

TEST(KvHerd, RejectsContradictoryOptions) {
  const auto refused = [](const std::string& options) {
    return test::refusal_of("kv_rate --fabric sim:cx3 " + options);
  };
  EXPECT_THAT(refused("-s 3"), HasSubstr("--size 3: a value has from 4 to 1000 bytes"));
  EXPECT_THAT(refused("-s 1001"), HasSubstr("--size 1001"));
  EXPECT_THAT(refused("-c RC"), AllOf(HasSubstr("--connection RC"), HasSubstr("UC")));
  EXPECT_THAT(refused("--batching --prefetch pipeline"), HasSubstr("--prefetch pipeline"));
  EXPECT_THAT(refused("--requests send --prefetch pipeline"), HasSubstr("--prefetch pipeline"));
  EXPECT_THAT(refused("--max_batch 8"), HasSubstr("--max_batch 8"));
  EXPECT_THAT(refused("--buckets 3"), AllOf(HasSubstr("--buckets 3"), HasSubstr("power of two")));
  EXPECT_THAT(refused("--log 5000"), AllOf(HasSubstr("--log 5000"), HasSubstr("power of two")));
  EXPECT_THAT(refused("--window 129"), HasSubstr("--window 129"));
  EXPECT_THAT(refused("-t 5"), AllOf(HasSubstr("--tx_depth 5"), HasSubstr("above 4")));
  EXPECT_THAT(refused("--accesses 8 -t 17"), AllOf(HasSubstr("--tx_depth 17"), HasSubstr("above 16")));
  EXPECT_THAT(refused("--accesses 17"), HasSubstr("--accesses: expected a whole number, 0 to 16, got \"17\""));
  EXPECT_THAT(refused("--accesses 2 --put_percent 50"), HasSubstr("--put_percent: with --accesses"));
  EXPECT_THAT(refused("--accesses 2 --buckets 64"), HasSubstr("--buckets: with --accesses"));
  EXPECT_THAT(refused("--accesses 2 --log 4096"), HasSubstr("--log: with --accesses"));
  EXPECT_THAT(refused("--accesses 2 --emulate"), HasSubstr("--emulate"));
  EXPECT_THAT(refused("--accesses 2 --store pilaf"), HasSubstr("--accesses: only for --store herd"));
  EXPECT_THAT(refused("--accesses 0 --prefetch batch"), HasSubstr("--accesses 0 reads nothing"));
  EXPECT_THAT(refused("--validate"), HasSubstr("--validate"));
  EXPECT_THAT(refused("--events"), HasSubstr("--events"));
  EXPECT_THAT(refused("-l 2"), HasSubstr("--post_list 2"));
  EXPECT_THAT(test::refusal_of("kv_rate --fabric null --requests send"), HasSubstr("--requests send"));
}

TEST(KvEcho, EchoesAreRightWithEveryOption) {
  for (const char* options : {"--accesses 0", "--accesses 0 --batching", "--accesses 1", "--accesses 16 -s 4",
                              "--accesses 8 --prefetch off -s 1000", "--accesses 3 --prefetch batch -I 0",
                              "--accesses 5 --batching -q 2 --threads 3", "--accesses 2 --batching --prefetch off",
                              "--accesses 4 --requests send --threads 2", "--accesses 4 --window 1 --zipf 0.99"}) {
    const Json result = herd_result(options + std::string(kFewClients));
    const Json& checks = result.at("checks");
    EXPECT_GT(test::count_of(result, "gets"), 0u) << options;
    EXPECT_EQ(test::count_of(result, "puts"), 0u) << options;
    EXPECT_EQ(test::count_of(checks, "values"), test::count_of(result, "gets")) << options;
    EXPECT_EQ(test::count_of(checks, "wrong"), 0u) << options;
    EXPECT_EQ(test::count_of(result, "retries"), 0u) << options;
    EXPECT_FALSE(result.contains("evictions")) << options;
  }
}

TEST(KvEcho, WithLossResendsRequests) {
  const TempDir folder;
  const std::string cluster = test::changed_cluster(folder, {{"/fabric/loss_probability", 0.05}});
  for (const char* way : {"", "--prefetch off", "--requests send --window 2"}) {
    const Json record = herd_record("--fabric " + cluster + " --accesses 3 --clients 2 --client_threads 5 " +
                                    "--warmup 50us -D 2ms --retry_after 30us " + way);
    EXPECT_EQ(record.at("status"), "ok") << way;
    EXPECT_EQ(test::count_of(record.at("result").at("checks"), "wrong"), 0u) << way;
    EXPECT_GT(test::count_of(record.at("result"), "retries"), 50u) << way;
  }
}

// The nanoseconds that one thread of the server takes for a request, more clients than it can serve.
double thread_ns(const std::string& options) {
  return 1e3 / store_mops(herd_record(options + " --threads 1 --warmup 50us -D 200us").at("result"));
}

// A dependent access takes the latency of memory, whatever else a request takes.
TEST(KvEcho, WithoutPrefetchingEachAccessTakesTheLatencyOfMemory) {
  const TempDir folder;
  const std::string slow = test::changed_cluster(folder, {{"/host/dram_ns", 130}});
  for (const auto& [fabric, dram_ns] : {std::pair<std::string, double>("sim:cx3", 90), {slow, 130}}) {
    const std::string off = "--fabric " + fabric + " --prefetch off --accesses ";
    const double none = thread_ns(off + "0");
    for (const int accesses : {1, 2, 4, 8}) {
      EXPECT_NEAR(thread_ns(off + std::to_string(accesses)) - none, accesses * dram_ns, 0.02 * accesses * dram_ns)
          << fabric << " " << accesses;
    }
  }
}

// What a thread asked for arrives while it posts (90 ns), as long as a core's ten outstanding misses are enough. A
// batch waits for ten lines at a time: 9 ns each.
TEST(KvEcho, PrefetchingHidesTheAccesses) {
  const double none = thread_ns("--fabric sim:cx3 --accesses 0");
  EXPECT_NEAR(thread_ns("--fabric sim:cx3 --accesses 8"), none, 0.05 * none);
  EXPECT_NEAR(thread_ns("--fabric sim:cx3 --accesses 8 --prefetch batch") - none, 8 * 9, 10);
  EXPECT_GT(thread_ns("--fabric sim:cx3 --accesses 16"), 1.5 * none);
}

// SIGCOMM 2014, section 4.1.1: with 8 accesses five cores do as much as without any, and without prefetching far less.
TEST(KvEcho, FiveCoresThatPrefetchReachThePeakWithEightAccesses) {
  const std::string five = std::string("--threads 5 ") + kLoadedStore;
  const double peak = store_mops(herd_result(five + "--accesses 0"));
  EXPECT_GT(store_mops(herd_result(five + "--accesses 8")), 0.95 * peak);
  EXPECT_LT(store_mops(herd_result(five + "--accesses 8 --prefetch off")), 0.3 * peak);
}

TEST(KvHerd, ServesItselfOnTheNullDevice) {
  const Json result = test::result_of("kv_rate --fabric null --keys 1000 --warmup 0 -n 20000");
  EXPECT_GE(test::count_of(result, "ops"), 20000u);
  EXPECT_EQ(test::count_of(result.at("failed_gets"), "other_key"), 0u);
  for (const char* way : {"off", "pipeline", "batch"}) {
    const std::string echo = std::string("kv_rate --fabric null --accesses 8 --warmup 0 -n 20000 --prefetch ") + way;
    EXPECT_GE(test::count_of(test::result_of(echo), "ops"), 20000u) << way;
  }
}

}  // namespace
}  // namespace verbscope
