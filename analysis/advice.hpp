// Changes of a program's options, and what the rate becomes by each.
#pragma once

#include <string>
#include <vector>

#include "analysis/diagnosis.hpp"

namespace verbscope {

struct Advice {
  std::string change;             // "post lists of 16 instead of 1"
  double factor = 1;              // the rate becomes so many times as high
  bool at_least = false;          // closed form: the next limit gets easier by the change too
  Json options = Json::object();  // of the benchmark, that make the change; empty when none does
  bool by_run = false;            // the factor is that of a simulated run
  // The operation carries another payload then: whether that serves its purpose only its author can say.
  bool other_payload = false;
  std::string command{};  // the whole command line with the change; empty where there is none to type
};

// A payload of a cache line or less may be one that an immediate or a shorter WQE can carry in another form.
constexpr double kSmallPayload = 64;
// An immediate carries this many bytes.
constexpr double kImmediateBytes = 4;

// In closed form, for records whose cluster has no profile: changes that raise the rate by kWorthwhile, the best first.
// The time that the adapter's units and the peers take for an operation is left as it was measured: how it changes is
// not public. Empty without a limit.
std::vector<Advice> advise(const Record& record, const std::optional<Prediction>& prediction,
                           const Diagnosis& diagnosis);

}  // namespace verbscope
