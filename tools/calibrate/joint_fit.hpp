// All parameters of a profile fitted together to many rows, and the fit judged by rows that were left out of it.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "harness/evidence/calibrated_parameters.hpp"

namespace verbscope {

// The logarithms of ours over theirs, of these rows, with these values of the parameters.
using LogErrors =
    std::function<std::vector<double>(const std::vector<double>& values, const std::vector<std::size_t>& rows)>;

// The fit to some rows, and its errors on others.
struct Fitted {
  std::vector<double> values;
  int evaluations = 0;
  std::vector<std::size_t> judged;  // the rows of `errors`
  std::vector<double> errors;       // logarithms
};

struct FitPlan {
  std::size_t rows = 0;
  std::size_t folds = 5;
  std::uint64_t seed = 1;
  double known_within = 0;  // how far off the starting values may be, a share of them; 0: nothing is known of them
  int evaluations = 0;      // of each fit at most
  double seconds = 0;  // of this machine, for all fits; the evaluation during which a fit's share passes is its last
  std::function<void(const Fitted&)> ended = [](const Fitted&) {};  // called after each fit, that to all rows first
};

struct JointFit {
  std::vector<double> start_errors;  // of all rows, before
  Fitted all;                        // fitted to all rows and judged by them
  std::vector<Fitted> left_out;      // a fold each: fitted to the rows of the others, judged by its own
};

// Minimises the sum of the squares of the log errors by BOBYQA on the logarithms of the parameters, each within a
// factor of four of its value in the profile (a share at most 1). Where the starting values are known within a share, a
// move of one parameter by that share costs as much as one more row that is as far off as the fit's rows are at the
// start: the most probable values for errors and parameters that are normally distributed (ridge regression: Hoerl and
// Kennard, Technometrics 12, 1970), so that a few rows do not settle many parameters. Every fold begins with the
// profile's values, as the fit to all rows does, and knows nothing of that. The evaluations with which BOBYQA begins
// are the same for each fit: they are made first, and `errors` should remember them.
JointFit fit_jointly(const std::vector<CalibratedParameter>& parameters, const FitPlan& plan, const LogErrors& errors);

// Twelve evaluations for each parameter and one: more gain nothing where the errors are those of a simulation.
int enough_evaluations(std::size_t parameters);

}  // namespace verbscope
