// What learn reads from the options of a point.
#include "harness/learn/point_traits.hpp"

#include <gtest/gtest.h>

namespace verbscope {
namespace {

// A row of configs/measured/rc-swarm.csv: 6 machines, 14 threads and 84 QPs of each.
Point all_to_all() {
  return {.benchmark = "all_to_all", .params = {{"machines", 6}, {"threads", 14}, {"vms", 1}, {"cq_mod", 8}}};
}

TEST(PointLoad, OfAMachineThatAsksAllOthers) {
  Point point = all_to_all();
  EXPECT_EQ(load_of(point).machines, 6);
  EXPECT_EQ(load_of(point).qps, 84);
  EXPECT_EQ(load_of(point).outstanding, 84 * 128);  // queues of the usual depth
  point.params["window"] = 32;                      // of each thread
  EXPECT_EQ(load_of(point).outstanding, 14 * 32);
}

TEST(NeedsLongInterval, IfEachCompletionIsPolledOrFewComeInIt) {
  const auto needs = [](const Json& params, double mops) {
    return needs_long_interval({.benchmark = "write_rate", .params = params}, mops, 2000);
  };
  EXPECT_TRUE(needs({{"cq_mod", 1}}, 10));
  EXPECT_FALSE(needs({{"cq_mod", 1}, {"window", 8}}, 10));  // the queue is never full
  EXPECT_FALSE(needs({{"cq_mod", 100}}, 10));
  // A megabyte takes 84 us at 100 Gb/s: a completion comes every 8.4 ms.
  EXPECT_TRUE(needs({{"cq_mod", 100}, {"size", 1 << 20}}, 0.0119));
  EXPECT_FALSE(needs({{"size", 16}}, 10));
  EXPECT_FALSE(needs_long_interval({.benchmark = "verb_latency", .params = {{"cq_mod", 1}}}, 2000, 2000));
  EXPECT_FALSE(needs_long_interval(all_to_all(), 40, 2000));
}

}  // namespace
}  // namespace verbscope
