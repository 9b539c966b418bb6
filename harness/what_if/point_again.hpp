// A record's point as options of its program, so that it runs again on a simulated cluster.
#pragma once

#include "common/record.hpp"
#include "harness/sweep/benchmark_spec.hpp"
#include "harness/sweep/sweep.hpp"

namespace verbscope {

// The point of a record: its options as they were in force, machines, threads and depths that followed from others
// among them, so that a change of one option changes no other. Left out is what says where and how long a run on
// hardware was, and how often operations are signalled where the program chose that by other options.
Point point_again(const Record& record, const BenchmarkSpec& spec);

// The point with these options changed.
Point with_options(Point point, const Json& changes);

// The options that bring twice as many operations under way; null for a program that keeps one (keeps_one_under_way).
Json twice_outstanding(const Record& record);

}  // namespace verbscope
