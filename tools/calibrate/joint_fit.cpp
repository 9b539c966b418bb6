#include "tools/calibrate/joint_fit.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <numeric>

#include "harness/learn/robust_fit.hpp"
#include "tools/calibrate/parameters.hpp"

namespace verbscope {
namespace {

constexpr int kSteps = 12;  // more gain nothing against the noise of a simulation

using Clock = std::chrono::steady_clock;

double sum_of_squares(const std::vector<double>& errors) {
  return std::inner_product(errors.begin(), errors.end(), errors.begin(), 0.0);
}

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// Answers the trials of a fit to `rows`: rows that count by shape need all others, so each set of values runs all.
class Evaluations {
 public:
  Evaluations(const LogErrors& errors, std::vector<std::size_t> rows) : errors_(errors), rows_(std::move(rows)) {}

  std::vector<double> operator()(const std::vector<FitTrial>& trials) {
    std::vector<double> out;
    for (const FitTrial& trial : trials) {
      auto [known, is_new] = known_.try_emplace(trial.values);
      if (is_new) known->second = errors_(trial.values, rows_);
      out.push_back(known->second[trial.row]);
    }
    return out;
  }

  int count() const { return static_cast<int>(known_.size()); }

 private:
  const LogErrors& errors_;
  std::vector<std::size_t> rows_;
  std::map<std::vector<double>, std::vector<double>> known_;
};

std::vector<double> rounded_values(const std::vector<FitParameter>& parameters, std::vector<double> values) {
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = rounded_value(parameters[i], values[i]);
  return values;
}

FitResult fit_to(const std::vector<FitParameter>& parameters, const std::vector<std::size_t>& rows, double known_within,
                 double seconds, const LogErrors& errors) {
  const Clock::time_point begin = Clock::now();
  std::vector<double> start;
  for (const FitParameter& parameter : parameters) start.push_back(parameter.start);
  Evaluations evaluations(errors, rows);
  const double mean = std::sqrt(sum_of_squares(errors(start, rows)) / static_cast<double>(rows.size()));
  const auto figures = [&](const std::vector<FitTrial>& trials) {
    std::vector<FitTrial> rounded = trials;
    for (FitTrial& trial : rounded) trial.values = rounded_values(parameters, trial.values);
    return evaluations(rounded);
  };
  RobustFit fit(parameters, figures,
                {.known_within = std::log1p(known_within), .error = std::max(mean, 1e-6), .loss = Loss::squares});
  for (std::size_t i = 0; i < rows.size(); ++i) fit.add_row(RowUse::fitted, 0, kAllProperties);
  for (int step = 0; step < kSteps && fit.improve(1) && seconds_since(begin) < seconds; ++step) {
  }
  return {.values = rounded_values(parameters, fit.values()),
          .evaluations = evaluations.count(),
          .tested = {},
          .errors = {}};
}

}  // namespace

int first_evaluations(std::size_t parameters) {
  return static_cast<int>(1 + kParameterGroups + parameters);
}

JointFit fit_jointly(const std::vector<FitParameter>& parameters, const FitPlan& plan, const LogErrors& errors) {
  std::vector<std::size_t> all(plan.rows);
  std::iota(all.begin(), all.end(), 0);
  std::vector<double> start;
  for (const FitParameter& parameter : parameters) start.push_back(parameter.start);
  JointFit out;
  const Clock::time_point begin = Clock::now();
  out.start_errors = errors(start, all);
  const auto share = [&](std::size_t fits_to_come) {
    return std::max(1e-3, plan.seconds - seconds_since(begin)) / static_cast<double>(fits_to_come);
  };
  out.all = fit_to(parameters, all, plan.known_within, share(plan.folds + 1), errors);
  out.all.tested = all;
  out.all.errors = errors(out.all.values, all);
  plan.ended(out.all);
  for (const std::vector<std::size_t>& fold : folds(plan.rows, plan.folds, plan.seed)) {
    std::vector<std::size_t> others;
    std::ranges::set_difference(all, fold, std::back_inserter(others));
    FitResult fitted = fit_to(parameters, others, plan.known_within, share(plan.folds - out.left_out.size()), errors);
    fitted.tested = fold;
    const std::vector<double> of_all = errors(fitted.values, all);  // shapes need all of their rows
    for (const std::size_t row : fold) fitted.errors.push_back(of_all[row]);
    plan.ended(fitted);
    out.left_out.push_back(std::move(fitted));
  }
  return out;
}

}  // namespace verbscope
