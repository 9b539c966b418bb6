// Chooses the points to measure next: those that are expected to reduce the uncertainty of the parameters most, per
// second of measuring. The linearised model gives the covariance that a point would leave (sequential A-optimal
// design: Atkinson, Donev and Tobias, Optimum Experimental Designs, 2007, chapter 10).
#pragma once

#include <cstddef>
#include <vector>

#include "harness/learn/robust_fit.hpp"

namespace verbscope {

// True if the parameter is not yet known well: the standard deviation of its coordinate is larger than this.
inline constexpr double kKnownWell = 0.03;

// Parameters that are not known well but could be: a derivative of some row is not nothing.
std::vector<std::size_t> uncertain_parameters(const RobustFit& fit, const Matrix& covariance);

// Returns up to `count` of the candidate rows, the best first. The gain of a row is the sum over the uncertain
// parameters of the expected decrease of the logarithm of their variance; rows that gain next to nothing are left out.
// Precondition: the rows have derivatives by the uncertain parameters.
std::vector<std::size_t> best_rows(const RobustFit& fit, const std::vector<std::size_t>& candidates,
                                   const std::vector<std::size_t>& uncertain, std::size_t count);

}  // namespace verbscope
