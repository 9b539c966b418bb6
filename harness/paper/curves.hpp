// A sweep as curves: a small table with a row for each value of one option and a column for each curve.
#pragma once

#include <string>
#include <vector>

#include "common/record.hpp"
#include "harness/sweep/sweep.hpp"

namespace verbscope {

// A point of a sweep that ran.
struct CurvePoint {
  std::string fabric;
  Point point;
  Record record;
};

// The rows are the values of the last key of `vary` (the entries of `points` when there is none). A curve is a fabric,
// an entry of `points` and a value for each other key of `vary`; it has a column for each key of `show`, which may be a
// path into the result ("latency.mean_us"). Of repetitions the last counts. Failed points are listed under the table.
// Ends with a newline.
std::string curve_table(const Sweep& sweep, const std::vector<CurvePoint>& points, std::size_t width = 0);

}  // namespace verbscope
