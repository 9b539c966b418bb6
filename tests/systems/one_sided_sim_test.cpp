// kv_rate with stores whose GETs are one-sided, as a program on simulated clusters: every value is checked while the
// server executes PUTs, whatever is lost, and what Kalia et al., SIGCOMM 2014, section 5.1, say of the emulations
// holds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/json.hpp"
#include "tests/microbench/changed_cluster.hpp"
#include "tests/microbench/run_program.hpp"

namespace verbscope {
namespace {

using testing::HasSubstr;

constexpr const char* kStores[] = {"pilaf", "farm", "farm_var"};

Json one_sided_result(const std::string& options) {
  return test::result_of("kv_rate " + options);
}
std::uint64_t number(const Json& result, const char* key) {
  return result.at(key).get<std::uint64_t>();
}

// A run that ends well has had every value checked, and every PUT executed once.
void expect_right(const Json& result, const std::string& options) {
  EXPECT_GT(number(result, "gets"), 20u) << options;
  EXPECT_GT(number(result, "puts"), 20u) << options;
  EXPECT_EQ(result.at("puts_executed"), result.at("puts")) << options;
  EXPECT_EQ(result.at("misses"), 0) << options;
  EXPECT_EQ(result.at("puts_refused"), 0) << options;
  EXPECT_EQ(result.at("checks").at("values"), result.at("gets")) << options;
  EXPECT_GT(number(result.at("checks"), "own_puts"), 0u) << options;
}

TEST(OneSidedStores, EveryValueIsRightWhilePutsAreExecuted) {
  for (const std::string store : kStores) {
    for (const std::string options :
         {"--clients 2 --client_threads 2 --keys 64 --put_percent 50",
          "--clients 2 --client_threads 4 --keys 64 --put_percent 50 --threads 3",
          "--clients 2 --client_threads 2 --keys 64 --put_percent 70 -s 4",
          "--clients 2 --client_threads 2 --keys 4 --put_percent 30 -s 1000 --window 8 --threads 2",
          "--clients 2 --client_threads 2 --keys 1 --put_percent 50 --threads 2",
          "--clients 2 --client_threads 2 --keys 64 --put_percent 60 -s 13 -I 0",
          "--clients 2 --client_threads 2 --keys 64 --put_percent 50 --zipf 0.99 -t 4",
          "--clients 2 --client_threads 2 --keys 64 --put_percent 50 --window 1 --wr_api",
          "--clients 1 --client_threads 2 --keys 64 --put_percent 50 --threads 6"}) {
      const std::string all = "--store " + store + " --fabric sim:cx3 --warmup 20us -D 60us ";
      expect_right(one_sided_result(all + options), all + options);
    }
  }
}

// 65,536 pages of values, for which the adapter has half as many places. From empty caches the rate rises by a half in
// 10 ms, so slowly that the halves of a window of 0.3 ms agree.
TEST(OneSidedStores, ARateDoesNotDependOnTheWindowWhereTranslationsMiss) {
  const TempDir folder;
  const std::string cluster = test::changed_cluster(folder, {{"/wire/pcie_lanes", 16}});
  const std::string options = "--store farm_var --emulate --put_percent 5 -s 1000 --threads 6 --fabric " + cluster;
  const double short_mops = one_sided_result(options + " -D 300us").at("rate_mops");
  const double long_mops = one_sided_result(options + " -D 5ms").at("rate_mops");
  EXPECT_NEAR(short_mops, long_mops, 0.01 * long_mops);
}

// One answer by WRITE can end many PUTs. A thread counts only those that it still needs.
TEST(OneSidedStores, MeasureExactlyTheOperationsOfTheGoal) {
  for (const std::string options : {"--store farm --emulate --fabric sim:cx3 --client_threads 1 --window 64",
                                    "--store farm --fabric sim:cx3 --client_threads 2",
                                    "--store pilaf --fabric sim:cib --client_threads 4 --window 16 -s 1000"}) {
    const Json result = one_sided_result("--clients 1 --keys 64 --put_percent 60 --warmup 20us -n 333 " + options);
    for (const Json& thread : result.at("threads")) EXPECT_EQ(thread.at("ops"), 333) << options;
  }
}

TEST(OneSidedStores, RunOnOtherClustersAndPorts) {
  for (const std::string store : kStores) {
    for (const std::string cluster : {"cib", "cx"}) {
      const std::string options = "--store " + store + " --fabric sim:" + cluster +
                                  " --put_percent 50 --keys 100 --clients 2 --client_threads 3 --warmup 20us -D 60us";
      expect_right(one_sided_result(options), options);
    }
  }
}

// UC loses messages and answers; the client sends again, and no PUT is executed twice.
TEST(OneSidedStores, NoPutIsExecutedTwiceWhereMessagesAreLost) {
  const TempDir folder;
  const std::string lossy = test::changed_cluster(folder, {{"/fabric/loss_probability", 0.05}});
  for (const std::string store : kStores) {
    const std::string options = "--store " + store + " --fabric " + lossy +
                                " --put_percent 50 --keys 20 --clients 2 --client_threads 2 --threads 2 "
                                "--qp_timeout 5 --retry_after 100us -D 5ms";
    const Json result = one_sided_result(options);
    expect_right(result, options);
    EXPECT_GT(number(result, "retries"), 0u) << options;
    EXPECT_GT(number(result, "answers_repeated"), 0u) << options;
  }
}

TEST(OneSidedStores, ValuesOfSeveralLinesAreSeenTornAndReadAgain) {
  for (const std::string store : {"farm", "farm_var"}) {
    const Json result = one_sided_result("--store " + store +
                                         " --fabric sim:cx3 --put_percent 50 --keys 8 -s 1000 --window 8 --clients 3 "
                                         "--warmup 20us -D 300us");
    EXPECT_GT(number(result, "torn_reads"), 0u) << store;
  }
}

// Many READs outstanding and few keys: the places of items are used again before the items are READ.
TEST(OneSidedStores, FindsItemsWhosePlacesWereReused) {
  const Json result =
      one_sided_result("--store pilaf --fabric sim:cx3 --put_percent 50 --keys 8 --window 16 --warmup 20us -D 100us");
  EXPECT_GT(number(result, "moved_reads"), 0u);
  EXPECT_EQ(result.at("checks").at("wrong"), 0);
}

TEST(OneSidedStores, EmulationsReadAsTheOriginals) {
  const auto reads = [](const std::string& store) {
    const Json result = one_sided_result("--store " + store + " --emulate --fabric sim:cx3 --clients 4 -D 500us");
    return std::pair(result.at("index_reads_per_get").get<double>(), result.at("value_reads_per_get").get<double>());
  };
  const auto [buckets, items] = reads("pilaf");  // of 3500 GETs, a bucket's standard deviation is 0.73
  EXPECT_NEAR(buckets, 1.6, 0.05);
  EXPECT_NEAR(items, 1, 0.02);
  const auto [neighbourhoods, nothing] = reads("farm");
  EXPECT_NEAR(neighbourhoods, 1, 0.01);
  EXPECT_EQ(nothing, 0);
  const auto [pointers, values] = reads("farm_var");
  EXPECT_NEAR(pointers, 1, 0.01);
  EXPECT_NEAR(values, 1, 0.01);
}

// Kalia et al., SIGCOMM 2014, section 5.3: the fewer READs a GET takes, and the smaller they are, the more there are;
// PUTs are faster than the GETs of FaRM.
TEST(OneSidedStores, TheReadsOfAGetDecideItsRate) {
  const auto mops = [](const std::string& options) {
    return one_sided_result("--emulate --fabric sim:cx3 --threads 6 --uars exclusive --warmup 50us -D 200us --store " +
                            options)
        .at("rate_mops")
        .get<double>();
  };
  const double farm = mops("farm --put_percent 0"), apart = mops("farm_var --put_percent 0");
  EXPECT_GT(farm, 1.2 * apart);
  EXPECT_GT(apart, 1.1 * mops("pilaf --put_percent 0"));
  EXPECT_GT(mops("farm --put_percent 100"), farm);
}

// An honest store looks one bucket more or less than the emulation: a cuckoo table with 75 % of its buckets used.
TEST(OneSidedStores, PilafsTableNeedsAsManyBucketsAsTheEmulation) {
  const Json result = one_sided_result("--store pilaf --fabric sim:cx3 --put_percent 0 --warmup 50us -D 500us");
  EXPECT_NEAR(result.at("index_reads_per_get").get<double>(), 1.6, 0.1);
}

TEST(OneSidedStores, RejectsOptionsOfOtherStores) {
  const auto refused = [](const std::string& options) {
    return test::refusal_of("kv_rate --fabric sim:cx3 " + options);
  };
  EXPECT_THAT(refused("--store pilaf --batching"), HasSubstr("--batching: only for --store herd and cached"));
  EXPECT_THAT(refused("--store farm --log 4096"), HasSubstr("--log: only for --store herd and cached"));
  EXPECT_THAT(refused("--store farm -c UC"), HasSubstr("--connection UC: READs need RC"));
  EXPECT_THAT(refused("--store farm -Q 4"), HasSubstr("--cq_mod 4"));
  EXPECT_THAT(test::refusal_of("kv_rate --fabric null --store farm"), HasSubstr("--fabric null"));
}

}  // namespace
}  // namespace verbscope
