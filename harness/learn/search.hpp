// The order in which a fit searches: first roughly, from values that are far off; then thoroughly, from what the rough
// search found; and at the end, when all rows are known.
#pragma once

#include <vector>

#include "harness/learn/intervals.hpp"
#include "harness/learn/robust_fit.hpp"

namespace verbscope {

// With the loss that finds the right values from afar, by up to this many steps.
void search_roughly(RobustFit& fit, int steps);

// With other numbers of units, fresh derivatives, and then the loss that ignores outliers. Precondition:
// search_roughly().
void search_thoroughly(RobustFit& fit, int steps);

// The last steps, other explanations, and the intervals at the final values, by parameter. Precondition:
// search_thoroughly().
std::vector<LearnedInterval> finish_search(RobustFit& fit);

}  // namespace verbscope
