// Other ways to post the same work, and what the closed-form model says of each.
#pragma once

#include <string>
#include <vector>

#include "common/json.hpp"
#include "pcie_model/predict.hpp"

namespace verbscope {

struct ShapeChange {
  std::string text;  // "post lists of 16 instead of 1"
  Json options;      // the benchmark's options for it, {"post_list": 16}
  Prediction after;  // the prediction for the role with the changed shape
};

// Every change that the operation has not made yet and that the adapter and the transport allow: batching, inlining or
// not, a WQE of a cache line less, header-only, fewer signals, UC for RC, inline receive. `outstanding`: operations
// that may be under way on a QP, which a list or the operations between two signals must not exceed.
std::vector<ShapeChange> shape_changes(const Prediction& before, int outstanding);

}  // namespace verbscope
