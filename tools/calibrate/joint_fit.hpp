// Fits all parameters of a profile together to many rows, and tests the fit on rows left out of it. The optimiser is
// NLopt's BOBYQA (Powell, DAMTP 2009/NA06): the minimum of a function within a box, without derivatives.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "harness/evidence/calibration.hpp"

namespace verbscope {

struct Box {
  std::vector<double> lower, upper;
};

struct Minimum {
  std::vector<double> at;
  double value = 0;
  int evaluations = 0;
};

// The search ends after the evaluation during which a limit is reached.
struct SearchLimit {
  int evaluations = 0;
  double seconds = 0;  // wall clock, above 0
};

using Objective = std::function<double(const std::vector<double>&)>;

// Number of evaluations before BOBYQA's first step for this many variables. Their points depend only on the start, the
// box and the step.
int first_evaluations(std::size_t variables);

// Searches for the minimum from `start`, which lies in the box. The first step is `step`, or less towards a nearer
// bound. Ends at steps below a hundredth of that, or at the limit. The result is never worse than the start. An
// exception of the objective ends the search and is rethrown.
Minimum minimise(const Objective& objective, const std::vector<double>& start, const Box& box, double step,
                 const SearchLimit& limit);

// The logarithms of ours / theirs for these rows, with these parameter values.
using LogErrors =
    std::function<std::vector<double>(const std::vector<double>& values, const std::vector<std::size_t>& rows)>;

// A fit to some rows, and its errors on the rows that test it.
struct FitResult {
  std::vector<double> values;
  int evaluations = 0;
  std::vector<std::size_t> tested;  // the rows of `errors`
  std::vector<double> errors;       // logarithms
};

struct FitPlan {
  std::size_t rows = 0;
  std::size_t folds = 5;
  std::uint64_t seed = 1;
  double known_within = 0;  // expected relative error of the starting values; 0: no penalty for moves
  int evaluations = 0;      // maximum per fit
  double seconds = 0;       // wall clock for all fits; a fit ends after the evaluation during which its share passes
  std::function<void(const FitResult&)> ended = [](const FitResult&) {
  };  // called after each fit, first the one to all rows
};

struct JointFit {
  std::vector<double> start_errors;  // of all rows, before the fit
  FitResult all;                     // fitted to all rows and tested on them
  std::vector<FitResult> left_out;   // one per fold: fitted to the other folds, tested on its own rows
};

// Minimises the sum of squared log errors by BOBYQA on the logarithms of the parameters. Each stays within a factor of
// four of its value in the profile; a share is at most 1.
//
// With `known_within`, moving one parameter by that share costs as much as one more row with the mean error of the rows
// at the start. This is the most probable result for normally distributed errors and parameters (ridge regression:
// Hoerl and Kennard, Technometrics 12, 1970), so a few rows do not determine many parameters.
//
// Every fold starts from the profile's values, without the result of the fit to all rows. The first evaluations of
// BOBYQA are the same for every fit: they are made first, and `errors` should cache them.
JointFit fit_jointly(const std::vector<CalibratedParameter>& parameters, const FitPlan& plan, const LogErrors& errors);

// Twelve evaluations per parameter, plus twelve. More gain nothing against the noise of a simulation.
int enough_evaluations(std::size_t parameters);

}  // namespace verbscope
