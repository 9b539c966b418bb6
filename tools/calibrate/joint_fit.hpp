// Fits all parameters of a profile together to many rows (harness/learn/robust_fit.hpp), and tests the fit on rows left
// out of it.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "harness/learn/parameters.hpp"

namespace verbscope {

// The logarithms of ours / theirs for these rows, with these parameter values.
using LogErrors =
    std::function<std::vector<double>(const std::vector<double>& values, const std::vector<std::size_t>& rows)>;

// A fit to some rows, and its errors on the rows that test it.
struct FitResult {
  std::vector<double> values;
  int evaluations = 0;              // of all rows of the fit
  std::vector<std::size_t> tested;  // the rows of `errors`
  std::vector<double> errors;       // logarithms
};

struct FitPlan {
  std::size_t rows = 0;
  std::size_t folds = 5;
  std::uint64_t seed = 1;
  double known_within = 0;  // expected relative error of the starting values; 0: no penalty for moves
  double seconds = 0;       // wall clock for all fits; a fit ends after the step during which its share passes
  std::function<void(const FitResult&)> ended = [](const FitResult&) {
  };  // called after each fit, first the one to all rows
};

struct JointFit {
  std::vector<double> start_errors;  // of all rows, before the fit
  FitResult all;                     // fitted to all rows and tested on them
  std::vector<FitResult> left_out;   // one per fold: fitted to the other folds, tested on its own rows
};

// Minimises the sum of squared log errors over the parameters. The result is never worse than the start.
//
// With `known_within`, moving one parameter by that share costs as much as one more row with the mean error of the rows
// at the start. So a few rows do not determine many parameters.
//
// Every fold starts from the profile's values, without the result of the fit to all rows. The first derivatives are the
// same for every fit: `errors` should cache evaluations.
JointFit fit_jointly(const std::vector<FitParameter>& parameters, const FitPlan& plan, const LogErrors& errors);

// The evaluations of a fit before its first step: the start and all derivatives.
int first_evaluations(std::size_t parameters);

}  // namespace verbscope
