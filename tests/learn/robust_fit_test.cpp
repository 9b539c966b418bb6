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

// Derivatives of nearby values hold: a search that starts there simulates steps only.
TEST(RobustFit, SimulatesNoDerivativesThatHold) {
  Machine lab = machine();
  RobustFit fit = fit_of(lab);
  for (std::size_t row = 0; row < lab.rows(); ++row)
    fit.add_row(RowUse::fitted, lab.figure(row, kTrue), kAllProperties);
  const auto simulations = [&] {
    const std::size_t before = lab.simulations();
    fit.improve(20, RobustFit::Until::little_gained_with_fresh_derivatives);
    return lab.simulations() - before;
  };
  simulations();
  fit.move_to(fit.coordinates() + Vector::Constant(2, 0.05));
  EXPECT_LT(simulations(), 5 * lab.rows());
  EXPECT_NEAR(fit.values()[0], 80, 0.1);
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

// Rows by both parameters are three times as fast as they should be, all of them.
TEST(RobustFit, OnlyRatiosOfAGroupCount) {
  Machine lab = machine();
  RobustFit fit = fit_of(lab);
  for (std::size_t row = 0; row < lab.rows(); ++row) {
    const bool in_group = row % 3 == 2;
    fit.add_row(RowUse::fitted, lab.figure(row, kTrue) + (in_group ? std::log(3) : 0), kAllProperties);
    if (in_group) fit.set_group(row, 0);
  }
  fit.improve(20);
  EXPECT_NEAR(fit.values()[0], 80, 0.1);
  EXPECT_NEAR(fit.values()[1], 200, 0.2);
  EXPECT_NEAR(fit.residual(2), 0, 0.001);
}

TEST(RobustFit, AGroupAloneTellsNoCommonFactor) {
  Machine lab;
  for (int i = 1; i <= 8; ++i) lab.longer(i, 0);
  RobustFit fit = fit_of(lab);
  for (std::size_t row = 0; row < lab.rows(); ++row) {
    fit.add_row(RowUse::fitted, lab.figure(row, kTrue), kAllProperties);
    fit.set_group(row, 0);
  }
  fit.improve(20);
  EXPECT_EQ(fit.values()[0], 40) << "the start";
  EXPECT_GT(std::sqrt(fit.covariance()(0, 0)), 0.49) << "as uncertain as the start";
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

// Eight rows say 80, three say 150. Cauchy's loss takes the three for outliers, unless each was measured twice.
TEST(RobustFit, AConfirmedFigureIsNoOutlier) {
  const auto fitted = [](bool confirmed) {
    Machine lab;
    for (int i = 0; i < 11; ++i) lab.longer(1, 0);
    RobustFit fit({parameter("nic.first_ns", 82), parameter("nic.second_ns", 150)}, lab.simulate(),
                  {.error = 0.05, .loss = Loss::cauchy});
    for (std::size_t row = 0; row < lab.rows(); ++row) {
      fit.add_row(RowUse::candidate, 0, kAllProperties);
      fit.set_measured(row, RowUse::fitted, -std::log(row < 8 ? 80.0 : 150.0), confirmed);
    }
    fit.improve(20);
    return fit.values()[0];
  };
  EXPECT_LT(fitted(false), 81.5);
  EXPECT_GT(fitted(true), 82);
}

// The simulation of a row fails below 100: what the other rows say counts, and the row has no figure there.
TEST(RobustFit, ARowWhoseSimulationFailsDoesNotCount) {
  Machine lab = machine();
  const LogFigures figures = [&lab](const std::vector<FitTrial>& trials) {
    std::vector<double> out = lab.figures(trials);
    for (std::size_t i = 0; i < trials.size(); ++i) {
      if (trials[i].row == 0 && trials[i].values[0] < 100) out[i] = std::nan("");
    }
    return out;
  };
  RobustFit fit({parameter("nic.first_ns", 140), parameter("nic.second_ns", 150)}, figures, {});
  for (std::size_t row = 0; row < lab.rows(); ++row)
    fit.add_row(RowUse::fitted, lab.figure(row, kTrue), kAllProperties);
  fit.improve(20);
  EXPECT_NEAR(fit.values()[0], 80, 1);
  EXPECT_TRUE(std::isnan(fit.residual(0)));
}

// Figures move in jumps of 1 %. The second parameter is 5 % of their time, so a short step shows no jump, or one that
// is twice too large.
TEST(RobustFit, MeasuresWeakDerivativesWithLongSteps) {
  Machine lab;
  for (int i = 1; i <= 8; ++i) lab.sum(1, 0.04 + 0.002 * i);
  const LogFigures figures = [&lab](const std::vector<FitTrial>& trials) {
    std::vector<double> out = lab.figures(trials);
    for (double& each : out) each = std::round(each * 100) / 100;
    return out;
  };
  RobustFit fit({parameter("nic.first_ns", 200), parameter("nic.second_ns", 200)}, figures, {});
  for (std::size_t row = 0; row < lab.rows(); ++row) fit.add_row(RowUse::fitted, 0, kAllProperties);
  fit.improve(0);
  for (std::size_t row = 0; row < lab.rows(); ++row) {
    EXPECT_NEAR(fit.derivatives(row)(0), -0.95, 0.1);
    EXPECT_NEAR(fit.derivatives(row)(1), -0.055, 0.03);
  }
}

TEST(RobustFit, DoesNotDifferentiateAFigureOfChance) {
  std::size_t trials_of_chance = 0;
  const LogFigures figures = [&](const std::vector<FitTrial>& trials) {
    std::vector<double> out;
    for (const FitTrial& trial : trials) {
      const bool chance = trial.row == 1;
      trials_of_chance += chance;
      out.push_back(chance ? 0.4 * static_cast<double>(trial.seed) : -std::log(trial.values[0]));
    }
    return out;
  };
  RobustFit fit({parameter("nic.first_ns", 200)}, figures, {});
  fit.add_row(RowUse::fitted, -std::log(220.0), kAllProperties);
  fit.add_row(RowUse::fitted, 0, kAllProperties);
  fit.improve(0);
  EXPECT_LT(fit.derivatives(0)(0), 0);
  EXPECT_EQ(fit.derivatives(1)(0), 0);
  EXPECT_EQ(trials_of_chance, 3U) << "one for each seed";
}

// The start of the sum is 190, and it is 250. In logarithms, 20 ns along the values that the linear model says have
// this sum misses it by more than 1 %, which costs 8 or more here.
TEST(RobustFit, TimesOfAPathThatAddUpHaveOneCost) {
  const Json profile =
      Json::parse(R"({"host": {"memory_write_ns": {"value": 70}}, "link": {"propagation_ns": {"value": 120}}})");
  Machine lab;
  for (int i = 1; i <= 8; ++i) lab.sum(1, 1);
  RobustFit fit(parameters_to_learn(profile), lab.simulate(), {.known_within = 2, .error = 0.01});
  for (std::size_t row = 0; row < lab.rows(); ++row) fit.add_row(RowUse::fitted, -std::log(250.0), kAllProperties);
  fit.improve(20);
  EXPECT_NEAR(fit.values()[0] + fit.values()[1], 250, 2);
  fit.refresh();
  const double before = fit.cost(0.01);
  const Matrix covariance = fit.covariance();
  for (const double ns : {-20, 20}) {
    const double distance = coordinate(fit.parameters()[0], fit.values()[0] + ns) - fit.coordinates()(0);
    const Vector moved = covariance.col(0) / covariance(0, 0) * distance;
    EXPECT_LT(fit.cost_at(fit.coordinates() + moved, 0.01), before + 2) << "values of a sum that agrees";
  }
}

// QPs beyond the size of a cache are four times slower. Near the start no derivative says so.
TEST(RobustFit, FindsACacheThatIsMuchLarger) {
  constexpr double kTrueSize = 6000;
  const auto figure = [](std::size_t row, double size) {
    return static_cast<double>(row) * 100 > size ? -std::log(4.0) : 0.0;
  };
  const LogFigures figures = [&](const std::vector<FitTrial>& trials) {
    std::vector<double> out;
    for (const FitTrial& trial : trials) out.push_back(figure(trial.row, trial.values[0]));
    return out;
  };
  RobustFit fit({{.name = "nic.cache_bytes",
                  .start = 1200,
                  .low = 100,
                  .high = 1e6,
                  .integer = true,
                  .group = ParameterGroup::caches}},
                figures, {});
  for (std::size_t row = 0; row < 20; ++row) fit.add_row(RowUse::fitted, figure(row, kTrueSize), kAllProperties);
  fit.improve(20);
  EXPECT_LT(fit.values()[0], 1500);
  fit.scan_caches();
  EXPECT_GE(fit.values()[0], 1900);  // the largest of the rows
  EXPECT_LT(fit.values()[0], 10'000);
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
