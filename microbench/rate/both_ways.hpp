// Which sides post: the server, the clients (--direction in), or both on the same QPs (--bidirectional), where the rate
// is that of both.
#pragma once

#include "microbench/bench/benchmark.hpp"
#include "microbench/bench/options.hpp"

namespace verbscope {

// --direction: who posts where one side does. The default is what `driver` is.
void add_direction(OptionTable& table, Side& driver);

void add_both_ways(OptionTable& table, bool& both_ways);

// Gives the clients, where nobody said otherwise, what the server has. Throws UsageError.
void adjust_both_ways(Options& options);

// The model of the server, of whose operations some go `out` and the others come `in`: in the shares that `result` has
// of them, or in equal ones.
Prediction predict_both_ways(const Prediction& out, const Prediction& in, const Json& result);

}  // namespace verbscope
