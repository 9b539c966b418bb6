// Other starts of a fit, on machines whose figures are formulas.
#include "harness/learn/starts.hpp"

#include <gtest/gtest.h>

#include <functional>

#include "harness/learn/intervals.hpp"
#include "tests/learn/machine.hpp"

namespace verbscope {
namespace {

// Ten rows take the longer time, six the first alone. With the first at 200, where it explains the ten rows, the second
// limits nothing. The better values explain all rows.
TEST(Starts, FindTheBetterOfTwoMinima) {
  const std::vector<double> truth{80, 200};
  const auto fitted = [&truth](bool from_slower_side) {
    Machine lab;
    for (int i = 1; i <= 10; ++i) lab.longer(i, i);
    for (int i = 1; i <= 6; ++i) lab.longer(i, 0);
    RobustFit fit({parameter("nic.first_ns", 200), parameter("nic.second_ns", 120)}, lab.simulate(), {});
    for (std::size_t row = 0; row < lab.rows(); ++row)
      fit.add_row(RowUse::fitted, lab.figure(row, truth), kAllProperties);
    fit.improve(30);
    if (from_slower_side) improve_from_slower_side(fit, 30);
    return fit.values();
  };
  EXPECT_GT(fitted(false)[0], 120);  // there are two minima
  EXPECT_NEAR(fitted(true)[0], 80, 1);
  EXPECT_NEAR(fitted(true)[1], 200, 2);
}

// A fit of figures that are a formula of the parameters and of an argument of the row.
RobustFit fit_to(const std::vector<FitParameter>& parameters, const std::vector<double>& truth,
                 const std::function<double(const std::vector<double>&, double)>& figure,
                 const std::vector<double>& arguments) {
  const auto figures = [figure, arguments](const std::vector<FitTrial>& trials) {
    std::vector<double> out;
    for (const FitTrial& trial : trials) out.push_back(figure(trial.values, arguments[trial.row]));
    return out;
  };
  RobustFit fit(parameters, figures, {.error = 0.01});
  for (const double argument : arguments) fit.add_row(RowUse::fitted, figure(truth, argument), kAllProperties);
  hold_units(fit);
  fit.improve(20);
  return fit;
}

const FitParameter kUnits{.name = "nic.responder_units",
                          .start = 3,
                          .low = 1,
                          .high = 128,
                          .integer = true,
                          .group = ParameterGroup::responder};
FitParameter service(double start) {
  FitParameter out = parameter("nic.service_ns", start);
  out.group = ParameterGroup::responder;
  return out;
}

// Rates know the time of the units only by their number, latencies know it alone. Steps do not change the number.
TEST(Starts, FindTheNumberOfUnits) {
  const auto figure = [](const std::vector<double>& values, double latency) {
    return latency > 0 ? std::log(latency + values[1]) : std::log(std::round(values[0]) / values[1]);
  };
  RobustFit fit = fit_to({kUnits, service(150)}, {5, 200}, figure, {0, 0, 0, 0, 0, 0, 0, 0, 100, 110, 120, 130});
  EXPECT_EQ(std::round(fit.values()[0]), 3);
  improve_with_alternatives(fit, 10);
  EXPECT_EQ(std::round(fit.values()[0]), 5);
  EXPECT_NEAR(fit.values()[1], 200, 1);
}

// Four units are a tenth faster than three, and in short intervals a third: with the corrections of three units, four
// explain the rows worse.
TEST(Starts, CompareExplanationsWithTheirOwnCorrections) {
  LogFigures figures = [](const std::vector<FitTrial>& trials) {
    std::vector<double> out;
    for (const FitTrial& trial : trials) {
      const bool gains = trial.row % 2 == 1 && std::round(trial.values[0]) >= 4;
      const double gain = trial.interval == SimulatedInterval::shortened ? 0.3 : 0.1;
      out.push_back((gains ? gain : 0) - std::log(trial.values[1]));
    }
    return out;
  };
  RobustFit fit({kUnits, service(200)}, figures, {.error = 0.01});
  for (std::size_t row = 0; row < 16; ++row)
    fit.add_row(RowUse::fitted, (row % 2 == 1 ? 0.1 : 0) - std::log(220), kAllProperties);
  hold_units(fit);
  fit.improve(20);
  improve_with_alternatives(fit, 10);
  EXPECT_EQ(std::round(fit.values()[0]), 4);
  EXPECT_NEAR(fit.values()[1], 220, 1);
}

// Ten rows take the longer one of two times, six the first alone, which is 0. At 200 it explains the ten rows, and the
// second limits nothing.
TEST(Starts, FindThatATimeWhichTheKnownProfileDoesNotHaveIsNone) {
  const auto figure = [](const std::vector<double>& values, double takes_longer) {
    return -std::log(100 + (takes_longer > 0 ? std::max(values[0], values[1]) : values[0]));
  };
  const FitParameter first{.name = "link.first_ns", .start = 0, .low = 0, .high = 1000, .offset = 10};
  const FitParameter second = parameter("nic.second_ns", 20);
  RobustFit fit = fit_to({first, second}, {0, 200}, figure, {0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1});
  Vector at = fit.coordinates();
  at << coordinate(first, 200), coordinate(second, 20);
  ASSERT_TRUE(fit.move_to(at));
  fit.improve(20);
  EXPECT_GT(fit.values()[0], 50);  // there are two minima
  improve_with_alternatives(fit, 10);
  EXPECT_NEAR(fit.values()[0], 0, 1);
  EXPECT_NEAR(fit.values()[1], 200, 2);
}

// Half of PCIe explains the rates of all messages as well as 90 % of the port does.
TEST(Starts, IntervalsContainALimitThatExplainsTheRowsAsWell) {
  const auto figure = [](const std::vector<double>& values, double bytes) {
    return -std::log(bytes / std::min(12 * values[0], 7 * values[1]));
  };
  const auto share = [](const std::string& name, double start) {
    return FitParameter{.name = name, .start = start, .low = 0.3, .high = 1, .group = ParameterGroup::port};
  };
  RobustFit fit = fit_to({share("link.host_share", 0.5), share("fabric.port_share", 1)}, {1, 0.9}, figure,
                         {512, 1024, 1500, 2048, 3000, 4096, 5000, 6000, 7000, 8192});
  const std::vector<RobustFit> alternatives = improve_with_alternatives(fit, 10).worse;
  fit.refresh();
  EXPECT_LT(profile_intervals(fit, {})[0].high, 0.6);
  const std::vector<LearnedInterval> intervals = profile_intervals(fit, alternatives);
  EXPECT_LE(intervals[0].low, 0.525);
  EXPECT_EQ(intervals[0].high, 1);
  EXPECT_FALSE(intervals[0].identified);
  EXPECT_LE(intervals[1].low, 0.9);
}

// Some units are twice as fast as one less, which are as fast as all smaller numbers: no derivative says that more are
// better. The times stay as they are.
void expect_found(double start, double truth) {
  const auto figure = [truth](const std::vector<double>& values, double by_units) {
    return -std::log(by_units > 0 && std::round(values[0]) >= truth ? values[1] / 2 : values[1]);
  };
  FitParameter units = kUnits;
  units.start = start;
  RobustFit fit = fit_to({units, service(200)}, {truth, 220}, figure, {0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1});
  EXPECT_EQ(std::round(fit.values()[0]), start);
  improve_with_alternatives(fit, 10);
  EXPECT_EQ(std::round(fit.values()[0]), truth);
  EXPECT_NEAR(fit.values()[1], 220, 1);
}
TEST(Starts, FindANumberOfUnitsThatNoDerivativeShows) {
  expect_found(3, 4);
  expect_found(16, 24);
}

}  // namespace
}  // namespace verbscope
