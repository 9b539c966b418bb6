// The outcome of a point, as a driver hands it to the runner: everything the record is made of. Typed results end here,
// JSON begins.
#pragma once

#include <string>
#include <vector>

#include "common/json.hpp"
#include "common/record.hpp"
#include "microbench/bench/plan.hpp"

namespace verbscope {

struct Outcome {
  Json config = Json::object();  // overrides of the options: what was chosen
  Json result = Json::object();
  std::vector<CounterReport> counters;
  Json prediction;                    // null: none
  std::string no_prediction;          // why there is none
  Json environment = Json::object();  // beside the usual facts
  std::string failure;                // one line; empty: the point is good
};

// The plan as it overrides options in the record's config.
Json plan_json(const Plan& plan);

}  // namespace verbscope
