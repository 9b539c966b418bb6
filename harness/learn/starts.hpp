// Other starts of a fit, because its cost has several minima.
#pragma once

#include <vector>

#include "harness/learn/robust_fit.hpp"

namespace verbscope {

// Fits again, by up to this many steps, from values at which the parameters that the rows do not determine make the
// machine slower, and keeps the better one of both fits. A time that limits no row has no derivative, so its rows may
// be put down to another parameter. If it limits too many rows, it has one. Precondition: fit.improve().
void improve_from_slower_side(RobustFit& fit, int steps);

// Keeps steps from moving the numbers of units. Between whole numbers no figure changes, and more units with longer
// times explain most rates as well: no step finds the right number.
void hold_units(RobustFit& fit);

struct TriedAlternatives {
  bool better = false;           // one was better than the fit, which went on from it
  std::vector<RobustFit> worse;  // those that were no better than the fit at the end
};

// Fits again, by up to `steps` steps, with other numbers of units of the requester and of the responder, from half to
// twice as many, with the whole of a link or the port, so that another one limits, and without a time that the known
// profile does not have. Goes on from the best one of these while that is better. Precondition: hold_units(),
// fit.improve().
TriedAlternatives improve_with_alternatives(RobustFit& fit, int steps);

}  // namespace verbscope
