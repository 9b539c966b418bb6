// Fits the parameters of a cluster profile that are marked "calibrated" to the published rows that they name, by
// running the benchmarks on changed profiles. It knows no parameter and no mechanism: only that a rate depends on a
// number.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "analysis/published.hpp"
#include "common/json.hpp"

namespace verbscope {

// A parameter of a profile: {"value": V, "source": "calibrated", "row": ID, "cite": ...} at `pointer`.
struct CalibratedParameter {
  nlohmann::json_pointer<std::string> pointer;
  std::string name;  // "section.key"
  std::string row;   // id of the published row
  bool integer = false;
};

// The calibrated parameters of a profile, in the file's order. Throws when one has no number above 0 or no row.
std::vector<CalibratedParameter> calibrated_parameters(const Json& profile, const std::string& where);

// Yields the figure of the row's benchmark on a profile, in the row's unit.
using MeasureRow = std::function<double(const Json& profile, const PublishedPoint& row)>;

struct FittedRow {
  const PublishedPoint* row = nullptr;
  double before = 0, after = 0;
  std::string parameter;  // name of the parameter fitted to it; empty: the row only checks
  double old_value = 0, new_value = 0;
  std::string note;  // "insensitive to the parameter", ...
};

struct FitOptions {
  double tolerance = 0.002;  // relative residual that is small enough
  int rounds = 4;            // over all parameters: one may depend on another
  int steps = 12;            // measurements for one parameter in one round
};

// Changes `profile`. Fits one parameter after the other by the secant method on logarithms, kept inside the bracket
// once there is one, and starts again until no row is off by more than the tolerance. Rows that no parameter names are
// measured before and after. `rows` are the cluster's, those that nothing reproduces yet are left out; the result
// points into them. Throws when two parameters name one row, or one names a prediction.
std::vector<FittedRow> recalibrate(Json& profile, const std::vector<CalibratedParameter>& parameters,
                                   const std::vector<PublishedPoint>& rows, const MeasureRow& measure,
                                   const FitOptions& options);

// The text of a profile with the new values of these parameters in the place of the old ones, and nothing else changed.
// Throws when a value cannot be found in the text.
std::string with_values(std::string text, const std::vector<CalibratedParameter>& parameters, const Json& profile,
                        const std::string& where);

}  // namespace verbscope
