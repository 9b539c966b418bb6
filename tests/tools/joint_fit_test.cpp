// Joint fits on clusters whose rates are formulas, so the right parameters are known.
#include "tools/calibrate/joint_fit.hpp"

#include <chrono>
#include <cmath>
#include <map>
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

// Rosenbrock's valley, whose minimum is 0 at (1, 1).
TEST(Bobyqa, FindsTheMinimumOfAValley) {
  const auto valley = [](const std::vector<double>& x) {
    return 100 * std::pow(x[1] - x[0] * x[0], 2) + std::pow(1 - x[0], 2);
  };
  const Minimum found =
      minimise(valley, {-1.2, 1}, {.lower = {-2, -2}, .upper = {2, 2}}, 0.2, {.evaluations = 2000, .seconds = 60});
  EXPECT_NEAR(found.at[0], 1, 0.02);
  EXPECT_NEAR(found.at[1], 1, 0.04);
}

TEST(Bobyqa, StaysWithinBoxAndEvaluationLimit) {
  int calls = 0;
  const auto slope = [&calls](const std::vector<double>& x) {
    ++calls;
    EXPECT_GE(x[0], 1);
    EXPECT_LE(x[1], 3);
    return x[0] - x[1];
  };
  const Minimum found =
      minimise(slope, {2, 2}, {.lower = {1, 1}, .upper = {3, 3}}, 0.5, {.evaluations = 12, .seconds = 60});
  EXPECT_LE(calls, 12);
  EXPECT_EQ(found.evaluations, calls);
  EXPECT_NEAR(found.at[0], 1, 0.05);
  EXPECT_NEAR(found.at[1], 3, 0.05);
}

TEST(Bobyqa, AcceptsOneVariableStartAtBoundAndFlatFunctions) {
  const auto bowl = [](const std::vector<double>& x) { return (x[0] - 0.5) * (x[0] - 0.5); };
  EXPECT_NEAR(minimise(bowl, {1}, {.lower = {0}, .upper = {1}}, 0.2, {.evaluations = 50, .seconds = 60}).at[0], 0.5,
              0.01);
  const auto flat = [](const std::vector<double>&) { return 7.0; };
  EXPECT_EQ(minimise(flat, {1, 1}, {.lower = {0, 0}, .upper = {2, 2}}, 0.2, {.evaluations = 50, .seconds = 60}).value,
            7);
}

TEST(Bobyqa, FirstPointsDoNotDependOnTheFunction) {
  const auto points = [](double sign) {
    std::vector<std::vector<double>> out;
    minimise([&](const std::vector<double>& x) { return out.push_back(x), sign * (x[0] + 2 * x[1] * x[1]); }, {1, 1},
             {.lower = {0, 0}, .upper = {4, 4}}, 0.2, {.evaluations = 30, .seconds = 60});
    out.resize(static_cast<std::size_t>(first_evaluations(2)));
    return out;
  };
  EXPECT_EQ(points(1), points(-1));
}

TEST(Bobyqa, RethrowsExceptionsOfTheFunction) {
  int calls = 0;
  const auto broken = [&calls](const std::vector<double>& x) {
    if (++calls == 3) fail("no more");
    return x[0];
  };
  EXPECT_EQ(error_of([&] {
              minimise(broken, {1, 1}, {.lower = {0, 0}, .upper = {2, 2}}, 0.2, {.evaluations = 50, .seconds = 60});
            }),
            "no more");
  EXPECT_EQ(calls, 3);
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
  const JointFit fit = fit_jointly(toy_parameters(), {.rows = 20, .evaluations = 200, .seconds = 60}, toy_errors);
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
  std::vector<CalibratedParameter> parameters = toy_parameters();
  parameters[0].integer = false;  // whole numbers are steps on which a search may end
  const JointFit fit = fit_jointly(parameters, {.rows = 20, .evaluations = 200, .seconds = 60}, odd);
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
  const FitPlan plan{.rows = 3, .folds = 3, .known_within = 0.1, .evaluations = 200, .seconds = 60};
  const JointFit fit = fit_jointly(toy_parameters(), plan, three_rows);
  EXPECT_NEAR(std::log(fit.all.values[1] / 50.5), 0.75 * std::log(1.1), 0.002);
  EXPECT_EQ(fit.all.values[0], 100);
  EXPECT_NEAR(std::log(fit.left_out[0].values[1] / 50.5), 2. / 3 * std::log(1.1), 0.002);
}

TEST(JointFit, EndsAtTheTimeLimitWithSlowEvaluations) {
  int calls = 0;
  const auto slow = [&calls](const std::vector<double>& values, const std::vector<std::size_t>& rows) {
    std::this_thread::sleep_for(std::chrono::milliseconds(calls++ == 0 ? 1 : 10));
    return toy_errors(values, rows);
  };
  std::vector<int> evaluations;
  const FitPlan plan{.rows = 20, .evaluations = 100000, .seconds = 0.3, .ended = [&](const FitResult& fit) {
                       evaluations.push_back(fit.evaluations);
                     }};
  fit_jointly(toy_parameters(), plan, slow);
  EXPECT_EQ(evaluations.size(), 6u);
  // A fit ends with the evaluation during which its share passes, beside two that judge it, however slow this machine
  // is.
  EXPECT_LE(calls, 1 + 30 + 6 * 3);
}

// Of two parameters BOBYQA takes five evaluations before its first step. The start is known already, as to recalibrate,
// which foretells the time from it; four of 40 ms are more than a sixth of the time.
TEST(JointFit, EveryFitGetsItsFirstEvaluations) {
  std::map<std::vector<double>, std::vector<double>> known;
  const LogErrors remembering = [&known](const std::vector<double>& values, const std::vector<std::size_t>& rows) {
    const auto [place, is_new] = known.try_emplace(values);
    if (is_new) {
      std::vector<std::size_t> all(20);
      std::iota(all.begin(), all.end(), 0);
      place->second = toy_errors(values, all);
      if (known.size() > 1) std::this_thread::sleep_for(std::chrono::milliseconds(40));
    }
    std::vector<double> errors;
    for (const std::size_t row : rows) errors.push_back(place->second.at(row));
    return errors;
  };
  std::vector<int> evaluations;
  const FitPlan plan{.rows = 20, .evaluations = 100000, .seconds = 0.6, .ended = [&](const FitResult& fit) {
                       evaluations.push_back(fit.evaluations);
                     }};
  fit_jointly(toy_parameters(), plan, remembering);
  EXPECT_THAT(evaluations, testing::SizeIs(6));
  EXPECT_THAT(evaluations, testing::Each(testing::Ge(5)));
}

TEST(JointFit, UsesAtMostTwelveEvaluationsPerParameterAndOne) {
  EXPECT_EQ(enough_evaluations(2), 36);
}

}  // namespace
}  // namespace verbscope
