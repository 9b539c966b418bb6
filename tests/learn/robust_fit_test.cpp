// Fits on clusters whose figures are formulas, so the right parameters are known.
#include "harness/learn/robust_fit.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "harness/learn/design.hpp"
#include "tests/learn/machine.hpp"

namespace verbscope {
namespace {

const std::vector<double> kTrue{80, 200};

// Eight rows that the first parameter limits, eight that the second does, eight that both do.
Machine machine() {
  Machine out;
  for (int i = 1; i <= 8; ++i) {
    out.longer(i, 0);
    out.longer(0, i);
    out.sum(i, 9 - i);
  }
  return out;
}

RobustFit fit_of(Machine& machine, const RobustFitOptions& options = {}) {
  return {{parameter("nic.first_ns", 40), parameter("nic.second_ns", 150)}, machine.simulate(), options};
}

TEST(RobustFit, FindsBothParameters) {
  Machine lab = machine();
  RobustFit fit = fit_of(lab);
  for (std::size_t row = 0; row < lab.rows(); ++row)
    fit.add_row(RowUse::fitted, lab.figure(row, kTrue), kAllProperties);
  fit.improve(20);
  // The starting values count as one more row each, whose standard deviation is 1: they pull by less than a thousandth.
  EXPECT_NEAR(fit.values()[0], 80, 0.1);
  EXPECT_NEAR(fit.values()[1], 200, 0.2);
}

TEST(RobustFit, IgnoresOutliers) {
  Machine lab = machine();
  RobustFit fit = fit_of(lab);
  for (std::size_t row = 0; row < lab.rows(); ++row) {
    const double disturbance = row % 6 == 0 ? -0.7 : 0;  // four rows are half as fast as they should be
    fit.add_row(RowUse::fitted, lab.figure(row, kTrue) + disturbance, kAllProperties);
  }
  fit.improve(20);
  EXPECT_NEAR(fit.values()[0], 80, 2);
  EXPECT_NEAR(fit.values()[1], 200, 4);
}

TEST(RobustFit, RowsThatAreHeldOutDoNotCount) {
  Machine lab = machine();
  RobustFit fit = fit_of(lab);
  for (std::size_t row = 0; row < lab.rows(); ++row) {
    const bool held_out = row % 3 == 0;
    fit.add_row(held_out ? RowUse::held_out : RowUse::fitted, lab.figure(row, kTrue) + (held_out ? 1 : 0),
                kAllProperties);
  }
  fit.improve(20);
  EXPECT_NEAR(fit.values()[0], 80, 0.2);
  fit.simulate({0});
  EXPECT_NEAR(fit.residual(0), 1, 0.01);
}

// No row depends on the second parameter: it stays at its start, and its interval is that of the starting values.
TEST(RobustFit, AParameterWithoutRowsIsNotIdentified) {
  Machine lab;
  for (int i = 1; i <= 8; ++i) lab.longer(i, 0);
  RobustFit fit = fit_of(lab, {.known_within = 0.5});
  for (std::size_t row = 0; row < lab.rows(); ++row)
    fit.add_row(RowUse::fitted, lab.figure(row, kTrue), kAllProperties);
  fit.improve(20);
  EXPECT_NEAR(fit.values()[1], 150, 1e-6);
  EXPECT_NEAR(std::sqrt(fit.covariance()(1, 1)), 0.5, 1e-6);
  EXPECT_LT(std::sqrt(fit.covariance()(0, 0)), 0.01);
}

// Of a parameter that needs READs, rows of other operations are not simulated.
TEST(RobustFit, SimulatesNoDerivativeOfRowsWithoutTheProperty) {
  const auto simulations = [](std::uint32_t properties) {
    Machine lab = machine();
    FitParameter second = parameter("nic.second_ns", 150);
    second.needs = kRead;
    second.group = ParameterGroup::path;
    RobustFit fit({parameter("nic.first_ns", 40), second}, lab.simulate(), {});
    for (std::size_t row = 0; row < lab.rows(); ++row) fit.add_row(RowUse::fitted, lab.figure(row, kTrue), properties);
    fit.refresh();
    return lab.simulations();
  };
  EXPECT_LT(simulations(kAnyOperation), simulations(kRead));
}

// 95 % intervals of a hundred noisy machines contain the true values about 95 times: 85 to 100 are five standard
// deviations of that number.
TEST(RobustFit, IntervalsContainTheTrueValueAsOftenAsTheySay) {
  std::mt19937_64 random(1);
  std::normal_distribution<double> noise(0, 0.02);
  int inside = 0;
  for (int i = 0; i < 100; ++i) {
    Machine lab = machine();
    RobustFit fit = fit_of(lab);
    for (std::size_t row = 0; row < lab.rows(); ++row) {
      fit.add_row(RowUse::fitted, lab.figure(row, kTrue) + noise(random), kAllProperties);
    }
    fit.improve(20);
    const double deviation = std::sqrt(fit.covariance()(0, 0));
    inside += std::abs(std::log(fit.values()[0] / kTrue[0])) < 1.96 * deviation ? 1 : 0;
  }
  EXPECT_GE(inside, 85);
}

TEST(RobustFit, StaysWithinTheRange) {
  Machine lab = machine();
  std::vector<FitParameter> parameters{parameter("nic.first_ns", 40), parameter("nic.second_ns", 150)};
  parameters[1].high = 160;
  RobustFit fit(parameters, lab.simulate(), {});
  for (std::size_t row = 0; row < lab.rows(); ++row)
    fit.add_row(RowUse::fitted, lab.figure(row, kTrue), kAllProperties);
  fit.improve(20);
  EXPECT_LE(fit.values()[1], 160);
}

// A row that depends on the unknown parameter gains more than one that depends on the known one.
TEST(Design, ChoosesTheRowOfTheUncertainParameter) {
  Machine lab;
  for (int i = 1; i <= 8; ++i) lab.longer(i, 0);
  const std::size_t of_first = lab.longer(3, 0), of_second = lab.longer(0, 3);
  RobustFit fit = fit_of(lab);
  for (std::size_t row = 0; row < lab.rows(); ++row) {
    fit.add_row(row < of_first ? RowUse::fitted : RowUse::candidate, lab.figure(row, kTrue), kAllProperties);
  }
  fit.improve(5);
  const std::vector<std::size_t> uncertain = uncertain_parameters(fit, fit.covariance());
  EXPECT_EQ(uncertain, std::vector<std::size_t>{1});
  fit.differentiate({of_first, of_second}, [](std::size_t) { return true; });
  EXPECT_EQ(best_rows(fit, {of_first, of_second}, uncertain, 1), std::vector<std::size_t>{of_second});
}

}  // namespace
}  // namespace verbscope
