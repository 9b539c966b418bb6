// The console lines of a point.
#pragma once

#include <string>

#include "common/record.hpp"
#include "microbench/bench/benchmark.hpp"

namespace verbscope {

inline constexpr const char* kSimulatedLabel = "simulated ";  // before units of simulated values

// A rate, followed by `between`, and the bandwidth if `payload` bytes are not 0: "5.120 Mops, 2.622 Gb/s, ...".
std::string rate_text(double mops, const std::string& between, double payload, const char* label);

// A few lines: the point, the rate (labelled if simulated), the model's bound, lost messages. `operation`: of the
// benchmark's draft.
std::string summary(const Operation& operation, const Record& record);

// A program that measures several points prints a table with a line per point, which begins with the payload. The head:
// what the points have in common, and the headings.
std::string table_head(const Benchmark& benchmark, const Record& record);
std::string table_row(const Benchmark& benchmark, const Record& record);
// A line of such a table: `payload` or its heading, then the rest.
std::string table_line(const std::string& payload, const std::string& rest);

// A line with lat_mean_ns, lat_p50_ns and lat_p99_ns of a result; empty if it has none.
std::string latency_line(const Json& result);

// A line with answers_per_post of a result (loop/batch_counts.hpp); empty if it has none.
std::string batches_line(const Json& result);

}  // namespace verbscope
