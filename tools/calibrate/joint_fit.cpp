#include "tools/calibrate/joint_fit.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>

#include "harness/evidence/fit_rows.hpp"
#include "tools/calibrate/bobyqa.hpp"

namespace verbscope {
namespace {

constexpr double kReach = 4;        // a parameter may become so many times as large, or as small
constexpr double kFirstStep = 0.2;  // in the logarithm, where nothing is known of the starting values
constexpr int kEnough = 12;         // evaluations for each parameter and one

using Clock = std::chrono::steady_clock;

double sum_of_squares(const std::vector<double>& errors) {
  return std::inner_product(errors.begin(), errors.end(), errors.begin(), 0.0);
}

Fitted fit_to(const std::vector<CalibratedParameter>& parameters, const std::vector<std::size_t>& rows,
              double known_within, const SearchLimit& limit, const LogErrors& errors) {
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
  const double before = sum_of_squares(errors(values_at(start), rows));
  // What a move of a parameter's logarithm costs, by its square; and the first step.
  const double width = std::log1p(known_within);
  const double holding = known_within > 0 ? before / static_cast<double>(rows.size()) / (width * width) : 0;
  const Objective objective = [&](const std::vector<double>& x) {
    double cost = sum_of_squares(errors(values_at(x), rows));
    for (std::size_t i = 0; i < x.size(); ++i) cost += holding * (x[i] - start[i]) * (x[i] - start[i]);
    return cost;
  };
  const Minimum found = minimise(objective, start, box, known_within > 0 ? width : kFirstStep, limit);
  return {.values = values_at(found.value < before ? found.at : start),
          .evaluations = found.evaluations,
          .judged = {},
          .errors = {}};
}

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

}  // namespace

JointFit fit_jointly(const std::vector<CalibratedParameter>& parameters, const FitPlan& plan, const LogErrors& errors) {
  std::vector<std::size_t> all(plan.rows);
  std::iota(all.begin(), all.end(), 0);
  std::vector<double> start;
  for (const CalibratedParameter& parameter : parameters) start.push_back(parameter.value);
  JointFit out;
  const Clock::time_point begin = Clock::now();
  out.start_errors = errors(start, all);
  // Every fit begins with these evaluations, which `errors` then remembers: of the time left each has the same share.
  fit_to(parameters, all, plan.known_within,
         {.evaluations = first_evaluations(parameters.size()), .seconds = plan.seconds}, errors);
  const auto share = [&](std::size_t fits_to_come) {
    return std::max(1e-3, plan.seconds - seconds_since(begin)) / static_cast<double>(fits_to_come);
  };
  out.all = fit_to(parameters, all, plan.known_within,
                   {.evaluations = plan.evaluations, .seconds = share(plan.folds + 1)}, errors);
  out.all.judged = all;
  out.all.errors = errors(out.all.values, all);
  plan.ended(out.all);
  for (const std::vector<std::size_t>& fold : folds(plan.rows, plan.folds, plan.seed)) {
    std::vector<std::size_t> others;
    std::ranges::set_difference(all, fold, std::back_inserter(others));
    const SearchLimit limit{.evaluations = plan.evaluations, .seconds = share(plan.folds - out.left_out.size())};
    Fitted fitted = fit_to(parameters, others, plan.known_within, limit, errors);
    fitted.judged = fold;
    const std::vector<double> of_all = errors(fitted.values, all);  // so that shapes have all their rows
    for (const std::size_t row : fold) fitted.errors.push_back(of_all[row]);
    plan.ended(fitted);
    out.left_out.push_back(std::move(fitted));
  }
  return out;
}

int enough_evaluations(std::size_t parameters) {
  return kEnough * static_cast<int>(parameters + 1);
}

}  // namespace verbscope
