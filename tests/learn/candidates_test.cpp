// The points that learn may measure.
#include "harness/learn/candidates.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "harness/learn/point_traits.hpp"

namespace verbscope {
namespace {

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

}  // namespace
}  // namespace verbscope
