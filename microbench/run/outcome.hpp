// The outcome of a point, as a driver hands it to the runner: everything the record is made of. Typed results end here,
// JSON begins.
#pragma once

#include <string>
#include <vector>

#include "common/histogram.hpp"
#include "common/json.hpp"
#include "common/record.hpp"
#include "microbench/bench/option_table.hpp"
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

// Puts the outcome into a record, whose options are those of `table` and whose host is `environment`.
void fill_record(Record& record, const Outcome& outcome, const OptionTable& table, Json environment);

// The plan as it overrides options in the record's config.
Json plan_json(const Plan& plan);

// Takes the histogram (Histogram::pack) that each client's result has under `key` out of it, and returns all of them as
// one. Throws Error naming the client when there is none.
Histogram take_client_histograms(Json& result, const std::string& key);

}  // namespace verbscope
