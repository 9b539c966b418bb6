// Prints a sweep as a table: one row per value of one option, one column per curve.
#pragma once

#include <string>
#include <vector>

#include "common/record.hpp"
#include "harness/sweep/sweep.hpp"

namespace verbscope {

// A point of a sweep, with its record.
struct CurvePoint {
  std::string fabric;
  Point point;
  Record record;
};

// The rows are the values of the last key of `vary`, or the entries of `points` if `vary` is empty. A curve is one
// combination of a fabric, an entry of `points`, and a value of each other key of `vary`. It has one column per key of
// `show`, which may be a path into the result ("latency.mean_us"). The last repetition counts. Failed points are listed
// below the table. Ends with a newline.
std::string curve_table(const Sweep& sweep, const std::vector<CurvePoint>& points, std::size_t width = 0);

}  // namespace verbscope
