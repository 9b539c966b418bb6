// The parameters of a cluster profile that are marked "calibrated", found in its JSON and put back into its text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/json.hpp"

namespace verbscope {

// A parameter of a profile: {"value": V, "source": "calibrated", "row": ROW, "cite": ...} at `pointer`. ROW names what
// it was fitted to: a row, the source or the set of measured rows, or a joint fit (fit_rows.hpp).
struct CalibratedParameter {
  nlohmann::json_pointer<std::string> pointer;
  std::string name;  // "section.key"
  std::string row;
  bool integer = false;
  double value = 0;

  // A fraction of 1 by its name, so that it is 1 at most.
  bool is_share() const;
};

// The calibrated numbers of a profile, in the file's order; calibrated names are left out. Throws when one is not above
// 0 or has no row.
std::vector<CalibratedParameter> calibrated_parameters(const Json& profile, const std::string& where);

// A value as a profile has it: a whole number, or five digits.
double rounded_value(const CalibratedParameter& parameter, double value);

// The profile with these values of its parameters, one for each, rounded.
Json with_values(Json profile, const std::vector<CalibratedParameter>& parameters, const std::vector<double>& values);

// The text of a profile with `profile`'s values of these parameters and `row` as what they were fitted to, and nothing
// else changed. Throws when a place cannot be found in the text.
std::string rewritten(std::string text, const std::vector<CalibratedParameter>& parameters, Json profile,
                      const std::string& row, const std::string& where);

}  // namespace verbscope
