// What learn reads from the options of a point.
#include "harness/learn/candidates.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

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

// "out" is the default direction. With two names a configuration would be measured twice, and count twice.
TEST(Candidates, HaveOneNameForAConfiguration) {
  const CandidateFacts facts{.cores = 16};
  std::map<std::string, std::set<std::string>> names;
  for (const auto& points : {survey_points(facts), candidate_points(facts)}) {
    for (const Candidate& each : points) {
      Json params = each.point.params;
      const std::string name = params.dump();
      if (params.value("direction", "out") == "out") params.erase("direction");
      names[each.point.benchmark + params.dump()].insert(name);
    }
  }
  EXPECT_GT(names.size(), 400U);
  for (const auto& [configuration, found] : names) EXPECT_EQ(found.size(), 1U) << configuration;
}

// One unit at a time serves a QP: with fewer QPs than units, the number of units limits nothing.
TEST(Candidates, LetAllUnitsOfAResponderWork) {
  constexpr double kMostUnits = 24;  // of the shipped profiles, times 1.5 as hidden ones have
  for (const int cores : {8, 24}) {
    std::set<std::string> found;
    for (const Candidate& each : candidate_points({.cores = cores})) {
      const Json& params = each.point.params;
      const bool small = params.value("size", 8) <= 32, in = params.value("direction", "out") == "in";
      if (!small || load_of(each.point).qps <= kMostUnits || params.value("window", 0) > 0) continue;
      if (in || each.point.benchmark == "recv_rate" || each.point.benchmark == "atomic_rate")
        found.insert(each.point.benchmark + " " + params.value("connection", "RC"));
    }
    const std::set<std::string> expected{"atomic_rate RC", "read_rate RC",  "recv_rate RC", "recv_rate UC",
                                         "recv_rate UD",   "write_rate RC", "write_rate UC"};
    EXPECT_EQ(found, expected) << cores;
  }
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
