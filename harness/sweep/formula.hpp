// Formulas for integer options of a sweep, computed from other options: "clients / threads".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "harness/sweep/benchmarks.hpp"

namespace verbscope {

// True if the text contains an option name or an operator. "4k" is a plain value.
bool is_formula(std::string_view text);

// The options in the formula. Throws a line that begins with `where` if it contains anything but names, whole numbers,
// + - * / and parentheses.
std::vector<std::string> formula_names(std::string_view text, const std::string& where);

// True for options whose values are whole numbers: others have no formulas.
bool takes_formulas(const OptionSpec& option);
// True if the value is a formula for this option.
bool holds_formula(const OptionSpec& option, const Json& value);

// Computes each formula among the options `params` of the benchmark, from them and from its defaults. `where` names the
// sweep. Throws Error if a formula depends on itself, or if its value is not allowed.
Json with_formulas_computed(const BenchmarkSpec& spec, Json params, const std::string& where);

}  // namespace verbscope
