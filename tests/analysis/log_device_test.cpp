// The limit of a replicated store whose log is in a file, for hand-made records of hosts.
#include <gmock/gmock.h>

#include "analysis/explain.hpp"
#include "tests/analysis/records.hpp"

namespace verbscope {
namespace {

using testing::HasSubstr;

struct Times {
  double busy = 0.2;   // share of the leader's time
  double wait_us = 0;  // of a PUT for the log
  double put_share = 1;
};

// PUTs and GETs of 1 ms each.
Record record_with(const Times& times) {
  Record record =
      sweep_record(Json{{"replicas", "3"}, {"log", "file:/var/tmp/log"}, {"outstanding", 8}}, 0.008, 0, "verbs");
  record.benchmark = "raft_kv";
  record.environment["simulated"] = false;
  record.result.update(Json{{"put_mops", 0.008 * times.put_share},
                            {"lat_mean_ns", 1e6},
                            {"get_mean_ns", times.put_share < 1 ? Json(1e6) : Json()},
                            {"leader_busy_share", times.busy},
                            {"log_wait_mean_ns", times.wait_us > 0 ? Json(times.wait_us * 1e3) : Json()},
                            {"log_appends_per_sync", 3.5},
                            {"log_sync_p50_ns", 420e3},
                            {"log_sync_p99_ns", 1300e3}});
  return record;
}

const Advice* advice_with(const Explanation& it, const char* option) {
  for (const Advice& advice : it.advice) {
    if (advice.options.contains(option)) return &advice;
  }
  return nullptr;
}

TEST(LogDevice, IsTheLimitIfPutsWaitForSyncs) {
  const Record record = record_with({.wait_us = 900});
  const Explanation it = explain(record);
  ASSERT_EQ(it.limits.size(), 1u) << it.limit_sentence();
  EXPECT_EQ(it.limits.front().load.resource, Resource::log_device);
  EXPECT_NEAR(it.limits.front().gain, 1000.0 / 550, 0.02) << "syncs of half the time";
  EXPECT_THAT(it.limit_sentence(), HasSubstr("log device (operations wait for it 90.0 % of the time; 3.5 appends per "
                                             "sync of 420 us, 99 % 1300 us)"));
  const Advice* const in_memory = advice_with(it, "log");
  ASSERT_NE(in_memory, nullptr);
  EXPECT_LT(in_memory->factor, 5) << "the leader's thread can do five times as much";
  EXPECT_GT(in_memory->factor, 4.8);
  const Advice* const more = advice_with(it, "outstanding");
  ASSERT_NE(more, nullptr);
  EXPECT_NEAR(more->factor, 2, 0.05) << "a sync serves twice as many appends";
}

TEST(LogDevice, IsNotTheLimitOfOtherRecords) {
  const auto limit = [](const Times& times) {
    const Record record = record_with(times);
    return explain(record).limit_words();
  };
  EXPECT_EQ(limit({}), "operations outstanding") << "the log is in memory";
  EXPECT_EQ(limit({.wait_us = 300}), "operations outstanding") << "PUTs wait for messages more than for the log";
  EXPECT_EQ(limit({.wait_us = 900, .put_share = 0.1}), "operations outstanding") << "GETs add no entries";
  EXPECT_EQ(limit({.busy = 0.97, .wait_us = 900}), "CPU of the busiest thread");
}

}  // namespace
}  // namespace verbscope
