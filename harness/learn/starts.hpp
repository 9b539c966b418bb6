// A second start of a fit, because its cost has several minima.
#pragma once

#include "harness/learn/robust_fit.hpp"

namespace verbscope {

// Fits again, by up to this many steps, from values at which the parameters that the rows do not determine make the
// machine slower, and keeps the better one of both fits. A time that limits no row has no derivative, so its rows may
// be put down to another parameter. If it limits too many rows, it has one. Precondition: fit.improve().
void improve_from_slower_side(RobustFit& fit, int steps);

}  // namespace verbscope
