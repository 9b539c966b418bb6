// Two starts of a fit, because its cost has several minima.
#pragma once

#include "harness/learn/robust_fit.hpp"

namespace verbscope {

// Improves the fit by up to this many steps; then again from values at which the parameters that the rows do not
// determine make the machine slower, and keeps the better result. A time that limits no row has no derivative, so its
// rows may be put down to another parameter. If it limits too many rows, it has one.
void improve_from_both_sides(RobustFit& fit, int steps);

}  // namespace verbscope
