// Joint fits on clusters whose rates are formulas, so the right parameters are known.
#include "tools/calibrate/joint_fit.hpp"

#include <chrono>
#include <cmath>
#include <numeric>
#include <thread>

#include "tests/harness/fakes.hpp"
#include "tests/tools/toy_profile.hpp"
#include "tools/calibrate/parameters.hpp"

namespace verbscope {
namespace {

// Row i is a rate of four units, each of send_ns and i tenths of recv_ns; the published ones are those of 50 and 95 ns.
double toy_rate(const std::vector<double>& values, std::size_t row) {
  return 4e3 / (values[0] + static_cast<double>(row) / 10 * values[1]);
}

std::vector<double> toy_errors(const std::vector<double>& values, const std::vector<std::size_t>& rows) {
  std::vector<double> errors;
  for (const std::size_t row : rows) errors.push_back(std::log(toy_rate(values, row) / toy_rate({50, 95}, row)));
  return errors;
}

TEST(Folds, AreDisjointCompleteAndSeeded) {
  const auto first = folds(23, 5, 3);
  EXPECT_EQ(first, folds(23, 5, 3));
  EXPECT_NE(first, folds(23, 5, 4));
  std::vector<std::size_t> all;
  for (const auto& fold : first) {
    EXPECT_GE(fold.size(), 4u);
    EXPECT_LE(fold.size(), 5u);
    all.insert(all.end(), fold.begin(), fold.end());
  }
  std::ranges::sort(all);
  std::vector<std::size_t> expected(23);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(all, expected);
}

TEST(JointFit, FindsCoupledParametersTogether) {
  const JointFit fit = fit_jointly(fit_parameters(toy_parameters()), {.rows = 20, .seconds = 60}, toy_errors);
  EXPECT_EQ(fit.all.values[0], 50);
  EXPECT_NEAR(fit.all.values[1], 95, 1);
  for (const FitResult& fold : fit.left_out) {
    for (const double error : fold.errors) EXPECT_NEAR(error, 0, 0.02);
  }
}

// A row that no parameter can match shifts the fit to all rows, but not the fold without it.
TEST(JointFit, FoldIsIndependentOfItsRowsAndOfTheFitToAll) {
  std::vector<std::vector<double>> first_values;
  const auto odd = [&](const std::vector<double>& values, const std::vector<std::size_t>& rows) {
    if (rows.size() < 20 && (first_values.empty() || values == first_values.front())) first_values.push_back(values);
    std::vector<double> errors = toy_errors(values, rows);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (rows[i] == 7) errors[i] += 2;
    }
    return errors;
  };
  std::vector<FitParameter> parameters = fit_parameters(toy_parameters());
  parameters[0].integer = false;  // whole numbers are steps on which a search may end
  const JointFit fit = fit_jointly(parameters, {.rows = 20, .seconds = 60}, odd);
  EXPECT_GE(first_values.size(), 5u);  // each fold asks for the starting values
  EXPECT_EQ(first_values.front(), (std::vector<double>{100, 50.5}));
  std::size_t tested = 0;
  for (const FitResult& fold : fit.left_out) {
    tested += fold.tested.size();
    const auto seven = std::ranges::find(fold.tested, 7u);
    if (seven == fold.tested.end()) continue;
    EXPECT_NEAR(fold.values[0], 50, 1);
    EXPECT_NEAR(fold.errors[static_cast<std::size_t>(seven - fold.tested.begin())], 2, 0.05);
  }
  EXPECT_EQ(tested, 20u);
  EXPECT_GT(std::abs(fit.all.values[0] - 50) + std::abs(fit.all.values[1] - 95), 5);
}

// Three rows say 10 % more, each as far off at the start as a tenth is: the fourth of four votes is the starting
// value's.
TEST(JointFit, KnownStartingValueCountsAsARow) {
  const auto three_rows = [](const std::vector<double>& values, const std::vector<std::size_t>& rows) {
    return std::vector<double>(rows.size(), std::log(values[1] / (50.5 * 1.1)));
  };
  const FitPlan plan{.rows = 3, .folds = 3, .known_within = 0.1, .seconds = 60};
  const JointFit fit = fit_jointly(fit_parameters(toy_parameters()), plan, three_rows);
  EXPECT_NEAR(std::log(fit.all.values[1] / 50.5), 0.75 * std::log(1.1), 0.002);
  EXPECT_EQ(fit.all.values[0], 100);
  EXPECT_NEAR(std::log(fit.left_out[0].values[1] / 50.5), 2. / 3 * std::log(1.1), 0.002);
}

// A fit takes its derivatives and one step, however little time it has: the start, three groups or parameters at a
// time, and four attempts at a step at most.
TEST(JointFit, EndsAtTheTimeLimitWithSlowEvaluations) {
  const auto slow = [](const std::vector<double>& values, const std::vector<std::size_t>& rows) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return toy_errors(values, rows);
  };
  std::vector<int> evaluations;
  const FitPlan plan{
      .rows = 20, .seconds = 0.01, .ended = [&](const FitResult& fit) { evaluations.push_back(fit.evaluations); }};
  fit_jointly(fit_parameters(toy_parameters()), plan, slow);
  EXPECT_THAT(evaluations, testing::SizeIs(6));
  EXPECT_THAT(evaluations, testing::Each(testing::AllOf(testing::Ge(3), testing::Le(12))));
}

}  // namespace
}  // namespace verbscope
