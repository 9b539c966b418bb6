// Options for the side that posts: the server, the clients (--direction in), or both on the same QPs (--bidirectional,
// with the rate of both).
#pragma once

#include "microbench/bench/benchmark.hpp"
#include "microbench/bench/options.hpp"

namespace verbscope {

// --direction: the side that posts. The default is the value of `driver`.
void add_direction(OptionTable& table, Side& driver);

void add_both_ways(OptionTable& table, bool& both_ways);

// Sets the clients' options to those of the server, unless given. Throws UsageError.
void adjust_both_ways(Options& options);

// The model of a server whose operations go both ways, in the shares of `result`, or equal shares if it has none.
Prediction predict_both_ways(const Prediction& out, const Prediction& in, const Json& result);

}  // namespace verbscope
