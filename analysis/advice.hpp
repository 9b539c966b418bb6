// What would lift the limit of a point: each change is put to the closed-form model, and its gain is what the measured
// loads allow when they are scaled by what the model says of the changed operation.
#pragma once

#include <string>
#include <vector>

#include "analysis/diagnosis.hpp"

namespace verbscope {

struct Advice {
  std::string change;             // "post lists of 16 instead of 1"
  double factor = 1;              // of the rate
  bool at_least = false;          // what is the limit then gets easier by the change too, and how much is not public
  std::string then;               // what is the limit after it, in words
  Json options = Json::object();  // the options of the benchmark that make the change; empty when none does
};

// Changes that raise the rate by at least 3 %, the best first. The time that the adapter's units and the peers take for
// an operation is left as it was measured: how it changes is not public. Empty without a binding resource.
std::vector<Advice> advise(const Record& record, const std::optional<Prediction>& prediction,
                           const Diagnosis& diagnosis);

}  // namespace verbscope
