// What learn reads from the options of a point.
#include "harness/learn/candidates.hpp"

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

TEST(PollsOften, OfDeepQueuesWithFewUnsignaledOperations) {
  const auto write = [](const Json& params) { return Point{.benchmark = "write_rate", .params = params}; };
  EXPECT_TRUE(polls_often(write({{"cq_mod", 1}})));
  EXPECT_FALSE(polls_often(write({{"cq_mod", 1}, {"window", 8}})));  // the queue is never full
  EXPECT_FALSE(polls_often(write({{"cq_mod", 100}})));               // as perftest's tables have it
  EXPECT_FALSE(polls_often(write({{"size", 16}})));
  EXPECT_FALSE(polls_often(all_to_all()));
}

}  // namespace
}  // namespace verbscope
