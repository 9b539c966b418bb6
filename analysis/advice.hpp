// Changes that would lift the limit of a point. Each is put to the closed-form model, and its gain is what the measured
// loads allow when they are scaled by what the model says of the changed operation.
#pragma once

#include <string>
#include <vector>

#include "analysis/diagnosis.hpp"

namespace verbscope {

struct Advice {
  std::string change;             // "post lists of 16 instead of 1"
  double factor = 1;              // the rate becomes so many times as high
  bool at_least = false;          // the next limit gets easier by the change too, and how much is not public
  std::string then;               // the limit after the change, in words
  Json options = Json::object();  // the options of the benchmark that make the change; empty when none does
  bool by_run = false;            // the factor came from a simulated run, not from the loads (what_if.hpp)
};

// So few operations outstanding, by this option of which the value is `now`, that their WQEs stay in the adapter's
// cache: the change without its gain.
Advice fewer_outstanding(const std::string& option, double now, double fits);

// A change that gains less than this is not worth telling.
constexpr double kWorthwhile = 1.03;

// Changes that raise the rate by at least 3 %, the best first. The time that the adapter's units and the peers take for
// an operation is left as it was measured: how it changes is not public. Empty without a binding resource.
std::vector<Advice> advise(const Record& record, const std::optional<Prediction>& prediction,
                           const Diagnosis& diagnosis);

}  // namespace verbscope
