// The results of a store's clients as JSON: those of each node, and at the server those of all, judged.
#pragma once

#include <string>
#include <vector>

#include "microbench/bench/benchmark.hpp"
#include "microbench/run/report.hpp"
#include "systems/store/store.hpp"

namespace verbscope {

// What the client threads of one node found; without any, an empty object.
Json store_client_json(const std::vector<const Workload*>& threads);

// At the server: rates and latencies of GETs and PUTs, the check of every value, and how PUTs agree. Sets
// outcome.failure when a value was wrong or stale, or a PUT was executed more or less than once.
void judge_store(Outcome& outcome, const Store& store);

// Lines for the console.
std::string store_text(const Json& result);

}  // namespace verbscope
