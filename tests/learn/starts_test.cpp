// Other starts of a fit, on machines whose figures are formulas.
#include "harness/learn/starts.hpp"

#include <gtest/gtest.h>

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

// Four units are twice as fast as three, which are as fast as two: no derivative of three says that four are better.
TEST(Starts, FindANumberOfUnitsThatNoDerivativeShows) {
  const auto figure = [](double units, double time) { return -std::log(units >= 4 ? time / 2 : time); };
  const LogFigures figures = [&](const std::vector<FitTrial>& trials) {
    std::vector<double> out;
    for (const FitTrial& trial : trials) {
      const double time = trial.values[1];
      out.push_back(trial.row % 2 == 0 ? figure(std::round(trial.values[0]), time) : -std::log(time));
    }
    return out;
  };
  FitParameter units{.name = "nic.responder_units", .start = 3, .low = 1, .high = 128, .integer = true};
  RobustFit fit({units, parameter("nic.first_ns", 200)}, figures, {.error = 0.01});
  for (std::size_t row = 0; row < 20; ++row)
    fit.add_row(RowUse::fitted, row % 2 == 0 ? figure(4, 220) : -std::log(220.0), kAllProperties);
  fit.improve(20);
  EXPECT_EQ(std::round(fit.values()[0]), 3);
  improve_with_other_units(fit, 10);
  EXPECT_EQ(std::round(fit.values()[0]), 4);
  EXPECT_NEAR(fit.values()[1], 220, 1);
}

}  // namespace
}  // namespace verbscope
