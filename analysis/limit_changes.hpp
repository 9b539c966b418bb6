// Knees and cliffs of a curve: where the limit of a benchmark becomes another one.
#pragma once

#include <string>
#include <vector>

#include "common/record.hpp"

namespace verbscope {

// A point of a curve.
struct PointAlong {
  double x = 0, y = 0;
  const Record* record = nullptr;  // that is ok
};

struct LimitChange {
  double x = 0, y = 0;  // of the first point with the new limit
  std::string cause;    // "outbound wire"; "WQE cache (0.7 lines read again per op)"
};

// The changes along a curve whose points rise in x. A point has the limit that explain names in closed form; where
// the result falls and the adapter begins to read WQEs again, that is the cause. Points without a limit change nothing.
std::vector<LimitChange> limit_changes(const std::vector<PointAlong>& points);

}  // namespace verbscope
