// Fitting, on clusters whose rates are formulas, so that the right parameters are known.
#include "harness/paper/recalibrate.hpp"

#include <cmath>

#include "tests/harness/fakes.hpp"

namespace verbscope {
namespace {

constexpr const char* kProfile = R"({
  "name": "toy",
  "nic": {
    "units": {"value": 4, "source": "assumed", "cite": "none"},
    "send_ns":   {"value": 100, "source": "calibrated", "row": "send", "cite": "c"},
    "recv": {"recv_ns": {"value": 50.5, "source": "calibrated", "row": "recv", "cite": "c"}}
  }
})";

std::vector<PublishedPoint> rows(double send, double recv) {
  std::vector<PublishedPoint> out(4);
  const std::vector<std::string> ids{"send", "recv", "check", "later"};
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i].id = ids[i];
    out[i].benchmark = "send_rate";
    out[i].calibration = i < 2;
  }
  out[0].value = send;
  out[1].value = recv;
  out[2].value = 1;
  out[3].needs = "a benchmark of its own";
  return out;
}

double value(const Json& profile, const std::string& pointer) {
  return profile.at(Json::json_pointer(pointer)).get<double>();
}

// Four units of send_ns each; receiving also takes a tenth of a send.
double toy_rate(const Json& profile, const PublishedPoint& row) {
  const double send_ns = value(profile, "/nic/send_ns/value");
  const double recv_ns = value(profile, "/nic/recv/recv_ns/value");
  if (row.id == "send") return 4e3 / send_ns;
  if (row.id == "recv") return 4e3 / (recv_ns + send_ns / 10);
  return 1;
}

TEST(Recalibrate, FindsTheCalibratedParameters) {
  const auto parameters = calibrated_parameters(Json::parse(kProfile), "toy.json");
  ASSERT_EQ(parameters.size(), 2u);
  EXPECT_EQ(parameters[0].name, "nic.send_ns");
  EXPECT_TRUE(parameters[0].integer);
  EXPECT_EQ(parameters[1].name, "nic.recv.recv_ns");
  EXPECT_EQ(parameters[1].row, "recv");
  EXPECT_FALSE(parameters[1].integer);
}

TEST(Recalibrate, AParameterWithoutARowIsAnError) {
  const Json profile = Json::parse(R"({"a": {"value": 1, "source": "calibrated", "cite": "c"}})");
  EXPECT_THAT(error_of([&] { calibrated_parameters(profile, "toy.json"); }), testing::HasSubstr("toy.json: a: "));
}

TEST(Recalibrate, KeepsAParameterWhoseFitLeavesWhatAProfileMayHave) {
  Json profile = Json::parse(kProfile);
  const auto parameters = calibrated_parameters(profile, "toy.json");
  const auto table = rows(80, 40);
  const auto measure = [](const Json& changed, const PublishedPoint& row) {
    if (value(changed, "/nic/send_ns/value") < 60) fail("send_ns below 60");  // 80 Mops would need 50 ns
    return toy_rate(changed, row);
  };
  const auto fits = recalibrate(profile, parameters, table, measure, FitOptions{});
  EXPECT_EQ(value(profile, "/nic/send_ns/value"), 100);
  EXPECT_EQ(fits[0].note, "send_ns below 60");
  // The other one is fitted all the same: 4000/40 = 100 ns, of which a tenth of 100 belongs to sending.
  EXPECT_NEAR(value(profile, "/nic/recv/recv_ns/value"), 90, 90 * 0.003);
}

TEST(Recalibrate, SolvesCoupledParametersByRepetition) {
  Json profile = Json::parse(kProfile);
  const auto parameters = calibrated_parameters(profile, "toy.json");
  const auto table = rows(80, 40);
  const auto fits = recalibrate(profile, parameters, table, toy_rate, FitOptions{});
  // 4000/80 = 50 ns; 4000/40 = 100 ns, of which a tenth of 50 belongs to sending.
  EXPECT_EQ(value(profile, "/nic/send_ns/value"), 50);
  EXPECT_NEAR(value(profile, "/nic/recv/recv_ns/value"), 95, 95 * 0.003);
  ASSERT_EQ(fits.size(), 3u);
  EXPECT_DOUBLE_EQ(fits[0].before, 40);
  EXPECT_DOUBLE_EQ(fits[0].after, 80);
  EXPECT_EQ(fits[0].old_value, 100);
  EXPECT_EQ(fits[0].new_value, 50);
  EXPECT_EQ(fits[2].row->id, "check");
  EXPECT_EQ(fits[2].parameter, "");
}

TEST(Recalibrate, AFittedProfileIsLeftAsItIs) {
  Json profile = Json::parse(kProfile);
  const Json before = profile;
  int runs = 0;
  const auto counting = [&runs](const Json& p, const PublishedPoint& row) { return ++runs, toy_rate(p, row); };
  recalibrate(profile, calibrated_parameters(profile, "t"), rows(40, 4e3 / 60.5), counting, FitOptions{});
  EXPECT_EQ(profile, before);
  EXPECT_EQ(runs, 3);
}

TEST(Recalibrate, CrossesAPlateauWhereAnotherLimitBinds) {
  Json profile = Json::parse(kProfile);
  const auto capped = [](const Json& p, const PublishedPoint& row) {
    return row.id == "send" ? std::min(30.0, 4e3 / value(p, "/nic/send_ns/value")) : 1.0;
  };
  auto parameters = calibrated_parameters(profile, "t");
  parameters.pop_back();
  recalibrate(profile, parameters, rows(20, 1), capped, FitOptions{});  // 100 ns is capped; 200 ns gives 20
  EXPECT_NEAR(value(profile, "/nic/send_ns/value"), 200, 1);
}

TEST(Recalibrate, SaysWhenTheRateDoesNotDependOnTheParameter) {
  Json profile = Json::parse(kProfile);
  const auto constant = [](const Json&, const PublishedPoint&) { return 7.0; };
  const auto table = rows(80, 40);
  const auto fits = recalibrate(profile, calibrated_parameters(profile, "t"), table, constant, FitOptions{});
  EXPECT_EQ(fits[0].note, "the rate does not depend on the parameter here");
  EXPECT_EQ(fits[0].new_value, fits[0].old_value);
}

TEST(Recalibrate, FollowsASteepAndRisingRate) {
  Json profile = Json::parse(kProfile);
  const auto steep = [](const Json& p, const PublishedPoint& row) {
    return row.id == "send" ? std::pow(value(p, "/nic/send_ns/value") / 100, 3) : 1.0;
  };
  auto parameters = calibrated_parameters(profile, "t");
  parameters.pop_back();
  recalibrate(profile, parameters, rows(1000, 1), steep, FitOptions{});  // (x/100)^3 = 1000
  EXPECT_NEAR(value(profile, "/nic/send_ns/value"), 1000, 1);
}

TEST(Recalibrate, APredictionIsNeverFitted) {
  Json profile = Json::parse(kProfile);
  auto table = rows(80, 40);
  table[0].calibration = false;
  EXPECT_EQ(error_of([&] { recalibrate(profile, calibrated_parameters(profile, "t"), table, toy_rate, FitOptions{}); }),
            "nic.send_ns is fitted to send, which is a prediction");
}

TEST(Recalibrate, TwoParametersCannotHaveOneRow) {
  Json profile = Json::parse(kProfile);
  profile["nic"]["recv"]["recv_ns"]["row"] = "send";
  const auto table = rows(80, 40);
  EXPECT_EQ(error_of([&] { recalibrate(profile, calibrated_parameters(profile, "t"), table, toy_rate, FitOptions{}); }),
            "nic.recv.recv_ns: another parameter is fitted to send already");
}

TEST(Recalibrate, WritesTheNewValuesAndNothingElse) {
  Json profile = Json::parse(kProfile);
  const auto parameters = calibrated_parameters(profile, "t");
  profile["nic"]["send_ns"]["value"] = 50;
  profile["nic"]["recv"]["recv_ns"]["value"] = 95.25;
  std::string expected = kProfile;
  expected.replace(expected.find("100"), 3, "50");
  expected.replace(expected.find("50.5"), 4, "95.25");
  EXPECT_EQ(with_values(kProfile, parameters, profile, "t"), expected);
}

}  // namespace
}  // namespace verbscope
