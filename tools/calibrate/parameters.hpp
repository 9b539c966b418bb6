// The calibrated parameters of a profile as those of a fit, and the folds of a cross-validation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/json.hpp"
#include "harness/evidence/calibration.hpp"
#include "harness/learn/parameters.hpp"

namespace verbscope {

// The parameters for a fit, which starts at the profile's values. Each stays within a factor of four; a share is at
// most 1.
std::vector<FitParameter> fit_parameters(const std::vector<CalibratedParameter>& parameters);

// The text of a profile with the values of `profile` for these parameters and with `row` as the data of their fit.
// Nothing else changes. Throws Error if a parameter cannot be found in the text.
std::string replace_parameters(std::string text, const std::vector<CalibratedParameter>& parameters, Json profile,
                               const std::string& row, const std::string& where);

// Divides 0 to size - 1 at random into `count` disjoint parts whose sizes differ by at most one.
std::vector<std::vector<std::size_t>> folds(std::size_t size, std::size_t count, std::uint64_t seed);

}  // namespace verbscope
