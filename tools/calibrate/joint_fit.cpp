#include "tools/calibrate/joint_fit.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <nlopt.hpp>
#include <numeric>

#include "common/error.hpp"
#include "tools/calibrate/parameters.hpp"

namespace verbscope {
namespace {

// The objective for NLopt. Stores the best point, which NLopt loses if an evaluation throws or the limit is reached.
struct Search {
  const Objective& objective;
  nlopt::opt& optimiser;
  Minimum best;
  std::exception_ptr thrown;

  static double evaluate(const std::vector<double>& x, std::vector<double>& /*gradient*/, void* data) {
    auto& search = *static_cast<Search*>(data);
    try {
      const double value = search.objective(x);
      ++search.best.evaluations;
      if (search.best.at.empty() || value < search.best.value) {
        search.best.at = x;
        search.best.value = value;
      }
      return value;
    } catch (...) {
      search.thrown = std::current_exception();
      search.optimiser.force_stop();
      return 0;
    }
  }
};

constexpr double kMaxFactor = 4;    // between a parameter and its value in the profile, up or down
constexpr double kFirstStep = 0.2;  // of the logarithm, without known_within
constexpr int kEvaluations = 12;    // per parameter, and once more

using Clock = std::chrono::steady_clock;

double sum_of_squares(const std::vector<double>& errors) {
  return std::inner_product(errors.begin(), errors.end(), errors.begin(), 0.0);
}

FitResult fit_to(const std::vector<CalibratedParameter>& parameters, const std::vector<std::size_t>& rows,
                 double known_within, const SearchLimit& limit, const LogErrors& errors) {
  std::vector<double> start;
  Box box;
  for (const CalibratedParameter& parameter : parameters) {
    start.push_back(std::log(parameter.value));
    box.lower.push_back(start.back() - std::log(kMaxFactor));
    box.upper.push_back(start.back() + std::log(kMaxFactor));
    if (is_share(parameter)) box.upper.back() = std::min(box.upper.back(), 0.0);
  }
  const auto values_at = [&parameters](const std::vector<double>& x) {
    std::vector<double> values;
    for (std::size_t i = 0; i < x.size(); ++i) values.push_back(rounded_value(parameters[i], std::exp(x[i])));
    return values;
  };
  const double before = sum_of_squares(errors(values_at(start), rows));
  // `width` is the first step. The penalty of a move is `penalty` times its square.
  const double width = std::log1p(known_within);
  const double penalty = known_within > 0 ? before / static_cast<double>(rows.size()) / (width * width) : 0;
  const Objective objective = [&](const std::vector<double>& x) {
    double cost = sum_of_squares(errors(values_at(x), rows));
    for (std::size_t i = 0; i < x.size(); ++i) cost += penalty * (x[i] - start[i]) * (x[i] - start[i]);
    return cost;
  };
  const Minimum found = minimise(objective, start, box, known_within > 0 ? width : kFirstStep, limit);
  return {.values = values_at(found.value < before ? found.at : start),
          .evaluations = found.evaluations,
          .tested = {},
          .errors = {}};
}

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

}  // namespace

int first_evaluations(std::size_t variables) {
  return 2 * static_cast<int>(variables) + 1;
}

Minimum minimise(const Objective& objective, const std::vector<double>& start, const Box& box, double step,
                 const SearchLimit& limit) {
  nlopt::opt optimiser(nlopt::LN_BOBYQA, static_cast<unsigned>(start.size()));
  Search search{.objective = objective, .optimiser = optimiser, .best = {}, .thrown = nullptr};
  optimiser.set_min_objective(Search::evaluate, &search);
  optimiser.set_lower_bounds(box.lower);
  optimiser.set_upper_bounds(box.upper);
  std::vector<double> steps, tolerances;
  for (std::size_t i = 0; i < start.size(); ++i) {
    const double room = std::max(box.upper[i] - start[i], start[i] - box.lower[i]);
    const double near = std::min(box.upper[i] - start[i], start[i] - box.lower[i]);
    steps.push_back(std::min({step, room, near > 0 ? near : room}));
    tolerances.push_back(steps.back() / 100);
  }
  optimiser.set_initial_step(steps);
  optimiser.set_xtol_abs(tolerances);
  optimiser.set_maxeval(limit.evaluations);
  optimiser.set_maxtime(limit.seconds);
  std::vector<double> x = start;
  double value = 0;
  try {
    optimiser.optimize(x, value);
  } catch (const nlopt::roundoff_limited&) {  // keep the best point
  } catch (const nlopt::forced_stop&) {
  } catch (const std::exception& error) {
    fail("BOBYQA: {}", error.what());
  }
  if (search.thrown) std::rethrow_exception(search.thrown);
  return search.best;
}

JointFit fit_jointly(const std::vector<CalibratedParameter>& parameters, const FitPlan& plan, const LogErrors& errors) {
  std::vector<std::size_t> all(plan.rows);
  std::iota(all.begin(), all.end(), 0);
  std::vector<double> start;
  for (const CalibratedParameter& parameter : parameters) start.push_back(parameter.value);
  JointFit out;
  const Clock::time_point begin = Clock::now();
  out.start_errors = errors(start, all);
  // Every fit begins with these evaluations, which `errors` caches. All fits then get equal shares of the remaining
  // time.
  fit_to(parameters, all, plan.known_within,
         {.evaluations = first_evaluations(parameters.size()), .seconds = plan.seconds}, errors);
  const auto share = [&](std::size_t fits_to_come) {
    return std::max(1e-3, plan.seconds - seconds_since(begin)) / static_cast<double>(fits_to_come);
  };
  out.all = fit_to(parameters, all, plan.known_within,
                   {.evaluations = plan.evaluations, .seconds = share(plan.folds + 1)}, errors);
  out.all.tested = all;
  out.all.errors = errors(out.all.values, all);
  plan.ended(out.all);
  for (const std::vector<std::size_t>& fold : folds(plan.rows, plan.folds, plan.seed)) {
    std::vector<std::size_t> others;
    std::ranges::set_difference(all, fold, std::back_inserter(others));
    const SearchLimit limit{.evaluations = plan.evaluations, .seconds = share(plan.folds - out.left_out.size())};
    FitResult fitted = fit_to(parameters, others, plan.known_within, limit, errors);
    fitted.tested = fold;
    const std::vector<double> of_all = errors(fitted.values, all);  // shapes need all of their rows
    for (const std::size_t row : fold) fitted.errors.push_back(of_all[row]);
    plan.ended(fitted);
    out.left_out.push_back(std::move(fitted));
  }
  return out;
}

int enough_evaluations(std::size_t parameters) {
  return kEvaluations * static_cast<int>(parameters + 1);
}

}  // namespace verbscope
