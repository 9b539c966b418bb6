// A record's point as options of its program, so that it runs again on a simulated cluster.
#pragma once

#include <string>

#include "analysis/resource.hpp"
#include "common/record.hpp"
#include "harness/sweep/benchmark_spec.hpp"
#include "harness/sweep/sweep.hpp"

namespace verbscope {

// The point of a record: its options as they were in force, machines, threads and depths that followed from others
// among them, so that a change of one option changes no other. Left out is what says where and how long a run on
// hardware was, and how often operations are signalled where the program chose that by other options.
Point point_again(const Record& record, const BenchmarkSpec& spec);

// The point of a record as its command line gave it: what the program chose by itself it chooses again where an option
// changes, as it does for a person who types the command. point_again() where the record has no command line.
Point point_as_given(const Record& record, const BenchmarkSpec& spec);

// The point with these options changed; null removes one.
Point with_options(Point point, const Json& changes);

// "send_rate --fabric sim:cib --connection UD --size 32", to be typed.
std::string command_text(const Point& point, const std::string& fabric);

// The options that bring twice of a resource that options make; null where none does, as where a program keeps one
// operation under way (keeps_one_under_way), or has no such queue.
Json twice_by_options(const Record& record, Resource resource);

}  // namespace verbscope
