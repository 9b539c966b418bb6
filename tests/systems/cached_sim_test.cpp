// kv_rate --store cached as a program on simulated clusters: that every value is right, confirmed or sent, every PUT
// executed once, and as many GETs confirmed as chance says.
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

constexpr const char* kSmallCached = " --clients 2 --client_threads 3 --keys 5000 --warmup 20us -D 60us ";

Json cached_record(const std::string& options) {
  return test::record_of("kv_rate --store cached " + options);
}
Json cached_result(const std::string& options) {
  return cached_record("--fabric sim:cx3 " + options).at("result");
}

void expect_right_cached(const Json& result, const std::string& what) {
  test::expect_right_values(result, what);
  EXPECT_EQ(test::count_of(result, "confirmed") + test::count_of(result, "values_sent"),
            test::count_of(result.at("checks"), "values"))
      << what;
}

TEST(KvCached, ReturnsRightValuesWithEveryOption) {
  for (const char* options : {"", "--prefetch off --threads 3", "--batching -q 2 --threads 2", "--requests send",
                              "--put_percent 100", "-s 4 --put_percent 50", "-s 7 --put_percent 50",
                              "-s 8 --put_percent 50",  // a PUT's value is as long as a version
                              "-s 992 --put_percent 50", "-I 0 --put_percent 50",
                              "--window 16 -t 16 --max_batch 4 --batching --zipf 0.99 --put_percent 50",
                              "--wr_api --batching", "--small_keys", "--small_keys --batching -q 2 --threads 2"}) {
    const Json result = cached_result(kSmallCached + std::string(options));
    expect_right_cached(result, options);
    EXPECT_EQ(test::count_of(result, "retries"), 0u) << options;
  }
  const char* one_key = "--keys 1 --put_percent 50 --clients 2 --client_threads 3 --warmup 20us -D 60us";
  expect_right_cached(cached_result(one_key), one_key);
}

// More requests wait than the server's thread has places for responses: 204 and 128.
TEST(KvCached, ResendsNothingWithoutLoss) {
  for (const char* keys : {"", "--small_keys"}) {
    const Json result = cached_result(std::string("--keys 20000 --warmup 50us -D 100us ") + keys);
    expect_right_cached(result, keys);
    EXPECT_EQ(test::count_of(result, "retries"), 0u) << keys;
  }
}

// One packet of twenty is dropped.
TEST(KvCached, WithLossExecutesEveryPutOnceAndFinishes) {
  const TempDir folder;
  const std::string cluster = test::changed_cluster(folder, {{"/fabric/loss_probability", 0.05}});
  const std::string few = "--fabric " + cluster + " --clients 2 --client_threads 5 --keys 100 --warmup 50us -D 2ms ";
  for (const char* way : {"--put_percent 50", "--put_percent 50 --batching --threads 2 -q 2", "--small_keys",
                          "--put_percent 50 --window 16 -s 500"}) {
    const Json record = cached_record(few + "--retry_after 30us " + way);
    EXPECT_EQ(record.at("status"), "ok") << way;
    const Json& result = record.at("result");
    expect_right_cached(result, way);
    EXPECT_GT(test::count_of(result, "gets") + test::count_of(result, "puts"), 1000u) << way;
    EXPECT_GT(test::count_of(result, "retries"), 50u) << way;
    // A request is asked for again after 30 us, and when another was lost then, not before 60: ten in a row are lost
    // with a chance of 10^-10.
    EXPECT_LT(result.at("get_lat_max_ns").get<double>(), 1e6) << way;
  }
}

TEST(KvCached, ConfirmsAllGetsOfCachedKeysWithoutPuts) {
  for (const int percent : {0, 30, 100}) {
    const Json result = cached_result("--put_percent 0 --cached_share " + std::to_string(percent) + kSmallCached);
    const double share = result.at("confirmed_share").get<double>();
    // Of some 300 GETs: 2.5 standard deviations of 30 %.
    EXPECT_NEAR(share, percent / 100.0, percent == 30 ? 0.07 : 0) << percent;
  }
}

// A GET is confirmed when the last operation on the key that was its client's own, or a PUT of another, was its
// client's own: of N clients that ask alike, with a share p of PUTs, 1 / (1 + p (N - 1)).
TEST(KvCached, ConfirmedShareMatchesTheModel) {
  for (const auto& [clients, percent] : {std::pair(2, 5), {2, 50}, {4, 50}}) {
    const std::string options = "--clients " + std::to_string(clients) + " --put_percent " + std::to_string(percent);
    const Json result =
        cached_result("--client_threads 1 --window 1 --threads 2 --keys 100 --warmup 3ms -D 2ms " + options);
    const double share = result.at("confirmed_share").get<double>();
    // Of at least 700 GETs: 2.5 standard deviations of a half.
    EXPECT_NEAR(share, 1 / (1 + percent / 100.0 * (clients - 1)), 0.05) << options;
  }
}

TEST(KvCached, RejectsContradictoryOptions) {
  const auto refused = [](const std::string& options) {
    return test::refusal_of("kv_rate --fabric sim:cx3 " + options);
  };
  EXPECT_THAT(refused("--cached_share 5"), HasSubstr("--cached_share: only for --store cached"));
  EXPECT_THAT(refused("--store farm --small_keys"), HasSubstr("--small_keys: only for --store cached"));
  EXPECT_THAT(refused("--store cached --cached_share 101"), HasSubstr("--cached_share"));
  EXPECT_THAT(refused("--store cached --small_keys --cached_share 5"), HasSubstr("--cached_share 5"));
  EXPECT_THAT(refused("--store cached --small_keys --put_percent 5"), HasSubstr("--put_percent 5"));
  EXPECT_THAT(refused("--store cached --small_keys --keys 16777217"), HasSubstr("--keys 16777217"));
  EXPECT_THAT(refused("--store cached -s 993"), HasSubstr("--size 993"));
  EXPECT_THAT(refused("--store cached --emulate"), HasSubstr("--emulate"));
  EXPECT_THAT(refused("--store cached --requests write"), HasSubstr("--requests write"));
  EXPECT_THAT(refused("--store cached --prefetch pipeline"), HasSubstr("--prefetch pipeline"));
  EXPECT_THAT(refused("--store cached -c UC"), AllOf(HasSubstr("--connection UC"), HasSubstr("UD")));
  EXPECT_THAT(refused("--store cached --clients 2000"), HasSubstr("6000 client threads"));
  EXPECT_THAT(test::refusal_of("kv_rate --fabric null --store cached"), HasSubstr("--fabric null"));
}

}  // namespace
}  // namespace verbscope
