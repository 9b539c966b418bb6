// Figures of points that were measured several times, and the parameters of a profile.
#include "harness/learn/learner.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "common/files.hpp"
#include "common/paths.hpp"

namespace verbscope {
namespace {

std::vector<MeasuredFigure> figures(const std::string& key, const std::vector<double>& values) {
  std::vector<MeasuredFigure> out;
  for (const double value : values) out.push_back({.point = {}, .key = key, .figure = value, .server = "host"});
  return out;
}

double usual(const std::string& key, const std::vector<double>& values) {
  return usual_figure(figures(key, values)).figure;
}

bool confirmed(const std::vector<double>& values) {
  return usual_figure(figures("rate_mops", values)).confirmed;
}

TEST(UsualFigure, IsTheMeanOfTwoThatAgree) {
  EXPECT_DOUBLE_EQ(usual("rate_mops", {10, 10.2}), 10.1);
  EXPECT_TRUE(confirmed({10, 10.2}));
}

TEST(UsualFigure, IsTheFastestIfNoneAgree) {
  EXPECT_DOUBLE_EQ(usual("rate_mops", {6, 10}), 10);
  EXPECT_DOUBLE_EQ(usual("mops_per_machine", {6, 10}), 10);
  EXPECT_DOUBLE_EQ(usual("lat_mean_ns", {2000, 1500}), 1500);
  EXPECT_DOUBLE_EQ(usual("rate_mops", {0.87, 0.71, 1.29}), 1.29);
  EXPECT_FALSE(confirmed({0.87, 0.71, 1.29}));
}

TEST(UsualFigure, IsTheMiddleOfThoseThatAgree) {
  EXPECT_DOUBLE_EQ(usual("rate_mops", {10.2, 4, 10}), 10.1);
  EXPECT_DOUBLE_EQ(usual("rate_mops", {4.1, 20, 4}), 4.05);
  EXPECT_DOUBLE_EQ(usual("lat_mean_ns", {1500, 1520, 1530}), 1520);
  EXPECT_TRUE(confirmed({4.1, 20, 4}));
}

TEST(UsualFigure, OfOneIsItself) {
  EXPECT_DOUBLE_EQ(usual("rate_mops", {7}), 7);
  EXPECT_FALSE(confirmed({7}));
}

bool is_learned(const std::string& cluster, const std::string& name) {
  const auto parameters = parameters_to_learn(read_json_file(find_config("clusters", cluster)));
  return std::ranges::any_of(parameters, [&](const FitParameter& each) { return each.name == name; });
}

// 0 bytes in cx5-100g: responders share the cache of requesters.
TEST(ParametersToLearn, LeavesOutAPartThatTheAdapterDoesNotHave) {
  EXPECT_TRUE(is_learned("cib", "nic.qp_responder_context_cache_bytes"));
  EXPECT_FALSE(is_learned("cx5-100g", "nic.qp_responder_context_cache_bytes"));
  EXPECT_TRUE(is_learned("cx5-100g", "nic.qp_context_cache_bytes"));
}

// Parameters that may be 0 have an offset in the fit.
TEST(ParametersToLearn, KeepsATimeOfNothing) {
  for (const FitParameter& each : parameters_to_learn(read_json_file(find_config("clusters", "cib")))) {
    EXPECT_EQ(rounded_value(each, value_at_coordinate(each, coordinate(each, each.start))),
              rounded_value(each, each.start))
        << each.name;
  }
}

// The change of a value by the standard deviation of a start (RobustFitOptions::known_within).
double likely_move(const std::string& cluster, const std::string& name) {
  const auto parameters = parameters_to_learn(read_json_file(find_config("clusters", cluster)));
  const FitParameter& found = *std::ranges::find(parameters, name, &FitParameter::name);
  return value_at_coordinate(found, coordinate(found, found.start) + 0.5) - found.start;
}

// cx5ib has 0 for the latency of a READ's response, cib has 250 ns: a fit from cx5ib has to get there.
TEST(ParametersToLearn, LetsATimeOfNothingBecomeOneOfKnownProfiles) {
  EXPECT_GT(likely_move("cx5ib", "nic.read_response_ns"), 50);
  EXPECT_LT(likely_move("cib", "nic.read_response_ns"), 250);
}

}  // namespace
}  // namespace verbscope
