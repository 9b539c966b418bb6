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

struct FitPlan {
  std::size_t rows = 0;
  std::size_t folds = 5;
  std::uint64_t seed = 1;
  int evaluations = 0;  // of each fit at most
};

// The fit to some rows, and its errors on others.
struct Fitted {
  std::vector<double> values;
  std::vector<std::size_t> judged;  // the rows of `errors`
  std::vector<double> errors;       // logarithms
};

struct JointFit {
  std::vector<double> start_errors;  // of all rows, before
  Fitted all;                        // fitted to all rows and judged by them
  std::vector<Fitted> left_out;      // a fold each: fitted to the rows of the others, judged by its own
};

// Minimises the sum of the squares of the log errors by BOBYQA on the logarithms of the parameters, each within a
// factor of four of its value in the profile (a share at most 1). Every fold begins with the profile's values, as the
// fit to all rows does, and knows nothing of that.
JointFit fit_jointly(const std::vector<CalibratedParameter>& parameters, const FitPlan& plan, const LogErrors& errors);

// The evaluations of a plan's fit that a time allows, where one of all rows takes `seconds`: those with which BOBYQA
// begins are the same for each fold and are made once. No more than twelve for each parameter and one; never fewer than
// those.
int affordable_evaluations(std::size_t parameters, std::size_t fold_count, double seconds, double budget_seconds);
// The time that the plan takes at most, in seconds.
double longest_time(std::size_t parameters, const FitPlan& plan, double seconds);

}  // namespace verbscope
