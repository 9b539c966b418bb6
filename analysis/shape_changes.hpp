// Other ways to post the same work, each with its closed-form prediction.
#pragma once

#include <string>
#include <vector>

#include "common/json.hpp"
#include "pcie_model/predict.hpp"

namespace verbscope {

struct ShapeChange {
  std::string text;  // "post lists of 16 instead of 1"
  Json options;      // benchmark options for it, {"post_list": 16}
  Prediction after;  // with the changed shape, for the same role
};

// All changes that the adapter and the transport allow and that the operation does not use yet: batching, inlining or
// not, a WQE shorter by one cache line, header-only, fewer signals, UC instead of RC, inline receive. `outstanding`:
// operations that may be outstanding on a QP, the maximum for a post list and for the operations between two signals.
std::vector<ShapeChange> shape_changes(const Prediction& before, int outstanding);

}  // namespace verbscope
