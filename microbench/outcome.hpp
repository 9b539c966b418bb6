// What a driver hands to the runner after a point: everything the record is made of.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/json.hpp"
#include "common/record.hpp"
#include "microbench/benchmark.hpp"
#include "microbench/role.hpp"
#include "verbs/cpu_usage.hpp"

namespace verbscope {

// How many messages should have come to a side, and what became of them.
struct Delivery {
  std::uint64_t expected = 0;
  std::uint64_t received = 0;
  std::uint64_t wrong = 0;  // refused by --validate

  std::uint64_t lost() const { return expected > received ? expected - received : 0; }
  Delivery& operator+=(const Delivery& other) {
    expected += other.expected;
    received += other.received;
    wrong += other.wrong;
    return *this;
  }
};

struct Outcome {
  Json config = Json::object();  // overrides of the options: what was chosen
  Json result = Json::object();
  std::vector<CounterReport> counters;
  Json prediction;                    // null: none
  std::string no_prediction;          // why there is none
  Json environment = Json::object();  // in addition to the usual facts
  std::string failure;                // one line; empty: the point is good
};

// The result of one role: rate, threads with their cores, operations. `window` is the conductor's time from measure to
// stop. window_ops is rate times window: the operations of that window, as counters of the same window want them.
// `cores` has one entry a thread. Appends to `failure` when a thread measured nothing.
Json role_result(const Role& role, Picos window, const std::vector<int>& cores, std::string& failure);

// messages_expected, messages_received, lost, and what validation found (null without it).
Json delivery_json(const Delivery& delivery, bool validated);

// Sets outcome.failure when messages were wrong, or lost on a reliable transport.
void judge_delivery(const Delivery& delivery, const Operation& operation, std::string& failure);

// The plan as it overrides options in the record's config.
Json plan_json(const Plan& plan);

// CPU time, and as a share of one core over `window`.
Json cpu_json(const CpuSeconds& cpu, Picos window);

}  // namespace verbscope
