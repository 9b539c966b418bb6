// The lines that a person reads after a point.
#pragma once

#include <string>

#include "common/record.hpp"
#include "microbench/bench/benchmark.hpp"

namespace verbscope {

inline constexpr const char* kSimulatedLabel = "simulated ";  // before units of what is simulated

// A rate, `between` behind it, and what it moves of `payload` bytes, unless these are 0: "5.120 Mops, 2.622 Gb/s, ...".
std::string rate_text(double mops, const std::string& between, double payload, const char* label);

// A few lines: the point, the rate (labelled when simulated), the model's bound, what was lost.
std::string summary(const Traffic& traffic, const Record& record);

// Where a program measures several points, each is a line of a table that begins with its payload. The lines above the
// first: what is alike, and the headings.
std::string table_head(const Benchmark& benchmark, const Record& record);
std::string table_row(const Benchmark& benchmark, const Record& record);
// A line of such a table: `payload` or its heading, and what follows it.
std::string table_line(const std::string& payload, const std::string& rest);

// A line on lat_mean_ns, lat_p50_ns and lat_p99_ns of a result that has such; empty for one that has not.
std::string latency_line(const Json& result);

// A line on answers_per_post (loop/batch_counts.hpp), likewise.
std::string batches_line(const Json& result);

}  // namespace verbscope
