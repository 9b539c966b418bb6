// Converts a record's point to options of its program, so that it runs again on a simulated cluster.
#pragma once

#include <string>

#include "analysis/resource.hpp"
#include "common/record.hpp"
#include "harness/sweep/benchmark_spec.hpp"
#include "harness/sweep/sweep.hpp"

namespace verbscope {

// The point of a record with all options in force, also those that the program derived from others (machines, threads,
// depths), so that a change of one option changes no other. Leaves out options about the place and duration of a run on
// hardware, and the signalling interval if the program chose it.
Point point_again(const Record& record, const BenchmarkSpec& spec);

// The point of a record as its command line gave it. If an option changes, the program chooses its other options anew,
// as it does for a user who types the command. Without a command line in the record: point_again().
Point point_as_given(const Record& record, const BenchmarkSpec& spec);

// The point with these options changed; null removes an option.
Point with_options(Point point, const Json& changes);

// The command line, "send_rate --fabric sim:cib --connection UD --size 32".
std::string command_text(const Point& point, const std::string& fabric);

// The options that double a resource that options determine. Null if there are none: the program keeps one operation
// outstanding (keeps_one_outstanding), or has no such queue.
Json twice_by_options(const Record& record, Resource resource);

}  // namespace verbscope
