// The lines that a person reads after a point.
#pragma once

#include <string>

#include "common/record.hpp"
#include "microbench/bench/benchmark.hpp"

namespace verbscope {

// A few lines: the point, the rate (labelled when simulated), the model's bound, what was lost.
std::string summary(const Traffic& traffic, const Record& record);

// A line on lat_mean_ns, lat_p50_ns and lat_p99_ns of a result that has such; empty for one that has not.
std::string latency_line(const Json& result);

// A line on answers_per_post (loop/answer_list.hpp), likewise.
std::string batches_line(const Json& result);

}  // namespace verbscope
