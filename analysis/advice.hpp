// Advice: changes of a program's options, each with the rate that it should give.
#pragma once

#include <string>
#include <vector>

#include "analysis/diagnosis.hpp"

namespace verbscope {

struct Advice {
  std::string change;             // "post lists of 16 instead of 1"
  double factor = 1;              // new rate / present rate
  bool at_least = false;          // closed form: possibly more, because the next limit eases too
  Json options = Json::object();  // benchmark options that make the change; empty if no option does
  bool by_run = false;            // the factor comes from a simulated run
  // The change alters the payload, so only the program's author can judge whether the operation still does its job.
  bool other_payload = false;
  std::string command{};  // complete command line with the change; empty if there is none
};

// Payload of an immediate, in bytes.
constexpr double kImmediateBytes = 4;

// Closed-form advice, for records whose cluster has no profile. Returns the changes that raise the rate by kWorthwhile
// or more, best first; empty if the diagnosis has no limit. Assumes that the time per operation of the adapter's units
// and of the peers stays as measured, because no public model of it exists.
std::vector<Advice> advise(const Record& record, const std::optional<Prediction>& prediction,
                           const Diagnosis& diagnosis);

}  // namespace verbscope
