// The options of a point whose values change what an operation costs, and other values that each can have.
#pragma once

#include <string>
#include <vector>

#include "analysis/explain.hpp"
#include "common/record.hpp"
#include "harness/sweep/benchmark_spec.hpp"

namespace verbscope {

struct OptionLadder {
  std::string option;
  Json now;             // the value in force
  bool number = false;  // else `values` are all others that it can have
  std::vector<Json> values{};
  // Of a number: it goes from `low` to `high`.
  double low = 1, high = 1;
};

// The ladders of the record's options, those first that relieve a limit. The program itself refuses values that it
// cannot take; left out are options that bear on nothing that this operation does.
std::vector<OptionLadder> option_ladders(const Record& record, const BenchmarkSpec& spec, const Json& profile,
                                         const std::vector<Limit>& limits);

// "--post_list 16 (now 1)".
std::string change_text(const OptionLadder& ladder, const Json& value);

}  // namespace verbscope
