// The options of a recorded point: how it runs again on a simulated cluster, and other values for each option.
#pragma once

#include <string>
#include <vector>

#include "analysis/explain.hpp"
#include "analysis/resource.hpp"
#include "common/record.hpp"
#include "harness/sweep/benchmarks.hpp"
#include "harness/sweep/sweep.hpp"

namespace verbscope {

// The point of a record with all options in force, also those that the program derived from others (machines, threads,
// depths), so that a change of one option changes no other. Leaves out options about the place and duration of a run on
// hardware, and the signalling interval if the program chose it.
Point effective_point(const Record& record, const BenchmarkSpec& spec);

// The point of a record as its command line gave it. If an option changes, the program chooses its other options anew,
// as it does for a user who types the command. Without a command line in the record: effective_point().
Point point_as_given(const Record& record, const BenchmarkSpec& spec);

// The point with these options changed; null removes an option.
Point with_options(Point point, const Json& changes);

// The command line, "send_rate --fabric sim:cib --connection UD --size 32".
std::string command_text(const Point& point, const std::string& fabric);

// The options that double a resource that options determine. Null if there are none: the program keeps one operation
// outstanding (keeps_one_outstanding), or has no such queue.
Json doubling_options(const Record& record, Resource resource);

struct OptionChoices {
  std::string option;
  Json now;             // the current value
  bool number = false;  // numeric; else `values` has all other values
  std::vector<Json> values{};
  // Range of a numeric option.
  double low = 1, high = 1;
};

// Returns the choices of the record's options; options that relieve a limit come first. Values that the program does
// not accept are not filtered. Options without effect on this operation are left out.
std::vector<OptionChoices> option_choices(const Record& record, const BenchmarkSpec& spec, const Json& profile,
                                          const std::vector<Limit>& limits);

// "--post_list 16 (now 1)".
std::string change_text(const OptionChoices& choices, const Json& value);

}  // namespace verbscope
