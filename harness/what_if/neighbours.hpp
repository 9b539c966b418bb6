// The options of a point that affect the cost of an operation, and other values for each.
#pragma once

#include <string>
#include <vector>

#include "analysis/explain.hpp"
#include "common/record.hpp"
#include "harness/sweep/benchmarks.hpp"

namespace verbscope {

struct OptionLadder {
  std::string option;
  Json now;             // the current value
  bool number = false;  // numeric; else `values` has all other values
  std::vector<Json> values{};
  // Range of a numeric option.
  double low = 1, high = 1;
};

// Returns the ladders of the record's options; options that relieve a limit come first. Values that the program does
// not accept are not filtered. Options without effect on this operation are left out.
std::vector<OptionLadder> option_ladders(const Record& record, const BenchmarkSpec& spec, const Json& profile,
                                         const std::vector<Limit>& limits);

// "--post_list 16 (now 1)".
std::string change_text(const OptionLadder& ladder, const Json& value);

}  // namespace verbscope
