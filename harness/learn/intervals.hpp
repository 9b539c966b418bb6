// 95 % intervals of fitted parameters by profile likelihood: a parameter is held at another value, the others move with
// it as the linearised model says, and the rise of the simulated cost decides (Venzon and Moolgavkar, Applied
// Statistics 37, 1988). The linearised model alone gives intervals that are too narrow where another limit can take its
// place.
#pragma once

#include <vector>

#include "harness/learn/robust_fit.hpp"

namespace verbscope {

struct LearnedInterval {
  double low = 0, high = 0;  // in the unit of the profile
  bool identified = false;   // the points determine the value: high / low is at most kWidestInterval
};

// Largest ratio of the ends of the interval of an identified parameter, whose value is right to about a tenth.
inline constexpr double kWidestInterval = 1.25;

// The intervals at the present values, by parameter. Those that the linearised model does not identify keep its
// interval; the others get wider where the cost does not rise as it says. If the search meets better values, the fit
// moves there. An interval contains the values of alternatives that explain the rows nearly as well. Precondition:
// fit.refresh() at the present values.
std::vector<LearnedInterval> profile_intervals(RobustFit& fit, const std::vector<RobustFit>& alternatives);

}  // namespace verbscope
