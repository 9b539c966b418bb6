#include "harness/evidence/joint_fit.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "harness/evidence/bobyqa.hpp"
#include "harness/evidence/fit_rows.hpp"

namespace verbscope {
namespace {

constexpr double kReach = 4;        // a parameter may become so many times as large, or as small
constexpr double kFirstStep = 0.2;  // in the logarithm
constexpr int kEnough = 12;         // evaluations for each parameter and one

double sum_of_squares(const std::vector<double>& errors) {
  return std::inner_product(errors.begin(), errors.end(), errors.begin(), 0.0);
}

std::vector<double> fit_to(const std::vector<CalibratedParameter>& parameters, const std::vector<std::size_t>& rows,
                           int evaluations, const LogErrors& errors) {
  std::vector<double> start;
  Box box;
  for (const CalibratedParameter& parameter : parameters) {
    start.push_back(std::log(parameter.value));
    box.lower.push_back(start.back() - std::log(kReach));
    box.upper.push_back(start.back() + std::log(kReach));
    if (parameter.is_share()) box.upper.back() = std::min(box.upper.back(), 0.0);
  }
  const auto values_at = [&parameters](const std::vector<double>& x) {
    std::vector<double> values;
    for (std::size_t i = 0; i < x.size(); ++i) values.push_back(rounded_value(parameters[i], std::exp(x[i])));
    return values;
  };
  const Objective objective = [&](const std::vector<double>& x) { return sum_of_squares(errors(values_at(x), rows)); };
  const double before = objective(start);
  const Minimum found = minimise(objective, start, box, kFirstStep, evaluations);
  return values_at(found.value < before ? found.at : start);
}

// The time of the evaluations, in those of all rows: the folds share the first ones with the fit to all rows.
double evaluations_in_all(std::size_t parameters, std::size_t fold_count, double of_each_fit) {
  const double first = first_evaluations(parameters);
  return of_each_fit + static_cast<double>(fold_count - 1) * std::max(0.0, of_each_fit - first);
}

}  // namespace

JointFit fit_jointly(const std::vector<CalibratedParameter>& parameters, const FitPlan& plan, const LogErrors& errors) {
  std::vector<std::size_t> all(plan.rows);
  std::iota(all.begin(), all.end(), 0);
  std::vector<double> start;
  for (const CalibratedParameter& parameter : parameters) start.push_back(parameter.value);
  JointFit out;
  out.start_errors = errors(start, all);
  out.all.values = fit_to(parameters, all, plan.evaluations, errors);
  out.all.judged = all;
  out.all.errors = errors(out.all.values, all);
  for (const std::vector<std::size_t>& fold : folds(plan.rows, plan.folds, plan.seed)) {
    std::vector<std::size_t> others;
    std::ranges::set_difference(all, fold, std::back_inserter(others));
    Fitted fitted{.values = fit_to(parameters, others, plan.evaluations, errors), .judged = fold, .errors = {}};
    const std::vector<double> of_all = errors(fitted.values, all);  // so that shapes have all their rows
    for (const std::size_t row : fold) fitted.errors.push_back(of_all[row]);
    out.left_out.push_back(std::move(fitted));
  }
  return out;
}

int affordable_evaluations(std::size_t parameters, std::size_t fold_count, double seconds, double budget_seconds) {
  const int enough = kEnough * static_cast<int>(parameters + 1);
  int evaluations = first_evaluations(parameters);
  while (evaluations < enough &&
         evaluations_in_all(parameters, fold_count, evaluations + 1) * seconds <= budget_seconds)
    ++evaluations;
  return evaluations;
}

double longest_time(std::size_t parameters, const FitPlan& plan, double seconds) {
  return evaluations_in_all(parameters, plan.folds, plan.evaluations) * seconds;
}

}  // namespace verbscope
