// The calibrated parameters of a profile with other values, and the folds of a cross-validation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/json.hpp"
#include "harness/evidence/calibration.hpp"

namespace verbscope {

// True if the name marks a fraction, which is at most 1.
bool is_share(const CalibratedParameter& parameter);

// The value as stored in a profile: a whole number, or five significant digits.
double rounded_value(const CalibratedParameter& parameter, double value);

// The profile with these parameter values, rounded. Precondition: one value per parameter.
Json with_values(Json profile, const std::vector<CalibratedParameter>& parameters, const std::vector<double>& values);

// The text of a profile with the values of `profile` for these parameters and with `row` as the data of their fit.
// Nothing else changes. Throws Error if a parameter cannot be found in the text.
std::string replace_parameters(std::string text, const std::vector<CalibratedParameter>& parameters, Json profile,
                               const std::string& row, const std::string& where);

// Divides 0 to size - 1 at random into `count` disjoint parts whose sizes differ by at most one.
std::vector<std::vector<std::size_t>> folds(std::size_t size, std::size_t count, std::uint64_t seed);

}  // namespace verbscope
