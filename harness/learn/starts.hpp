// Other starts of a fit, because its cost has several minima.
#pragma once

#include "harness/learn/robust_fit.hpp"

namespace verbscope {

// Fits again, by up to this many steps, from values at which the parameters that the rows do not determine make the
// machine slower, and keeps the better one of both fits. A time that limits no row has no derivative, so its rows may
// be put down to another parameter. If it limits too many rows, it has one. Precondition: fit.improve().
void improve_from_slower_side(RobustFit& fit, int steps);

// Fits again with one unit less and one more of the requester and of the responder, and goes on in a direction that is
// better. The number is held for up to `steps` steps: a fit that may change it goes back to the wrong one, for which
// the other parameters make up. Precondition: fit.improve().
void improve_with_other_units(RobustFit& fit, int steps);

}  // namespace verbscope
