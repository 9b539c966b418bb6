// What a driver hands to the runner after a point: everything the record is made of.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/json.hpp"
#include "common/record.hpp"
#include "machine/cpu_usage.hpp"
#include "microbench/bench/benchmark.hpp"
#include "microbench/run/role.hpp"

namespace verbscope {

struct Outcome {
  Json config = Json::object();  // overrides of the options: what was chosen
  Json result = Json::object();
  std::vector<CounterReport> counters;
  Json prediction;                    // null: none
  std::string no_prediction;          // why there is none
  Json environment = Json::object();  // in addition to the usual facts
  std::string failure;                // one line; empty: the point is good
};

// The result of one role: rate, threads with their cores, operations, and what the benchmark adds. `window` is the
// conductor's time from measure to stop. window_ops are the operations of that window, as counters of the same window
// want them: rate times window, or with --iters just those that were counted. `cores` has one entry a thread. Sets
// `failure`, when it is empty, if this role's windows make the rate and a thread measured nothing.
Json role_result(const Role& role, Picos window, const std::vector<int>& cores, std::string& failure);

// Makes rate, operations and threads of the server's result those of its clients[], which drive the traffic.
// `by_count`: the window was ended by --iters.
void take_rate_of_clients(Json& result, bool by_count);

// messages_expected, messages_received, lost, and what validation found (null without it).
Json delivery_json(const Delivery& delivery, bool validated);

// Sets outcome.failure when messages were wrong, or lost on a reliable transport.
void judge_delivery(const Delivery& delivery, const Operation& operation, std::string& failure);

// The plan as it overrides options in the record's config.
Json plan_json(const Plan& plan);

// CPU time, and as a share of one core over `window`.
Json cpu_json(const CpuSeconds& cpu, Picos window);

}  // namespace verbscope
