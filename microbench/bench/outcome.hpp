// What a point has found out, before it becomes a record.
#pragma once

#include <string>
#include <vector>

#include "common/json.hpp"
#include "common/record.hpp"

namespace verbscope {

struct Outcome {
  Json config = Json::object();  // values that the plan chose, which override the options
  Json result = Json::object();
  std::vector<CounterReport> counters;
  Json prediction;                    // null: none
  std::string no_prediction;          // why there is none
  Json environment = Json::object();  // added to the usual facts
  std::string failure;                // one line; empty: the point is good
};

}  // namespace verbscope
