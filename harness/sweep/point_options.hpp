// The options of one point of a sweep, some of which are formulas of others.
#pragma once

#include <string>

#include "harness/sweep/benchmark_spec.hpp"

namespace verbscope {

// True for options whose values are whole numbers: others have no formulas.
bool takes_formulas(const OptionSpec& option);
// True if the value is a formula for this option.
bool holds_formula(const OptionSpec& option, const Json& value);

// Computes each formula among the options `params` of the benchmark, from them and from its defaults. `where` names the
// sweep. Throws Error if a formula depends on itself, or if its value is not allowed.
Json with_formulas_computed(const BenchmarkSpec& spec, Json params, const std::string& where);

}  // namespace verbscope
