// The lines that a person reads after a point.
#pragma once

#include <string>

#include "common/record.hpp"
#include "microbench/bench/benchmark.hpp"

namespace verbscope {

// A few lines: the point, the rate (labelled when simulated), the model's bound, what was lost.
std::string summary(const Traffic& traffic, const Record& record);

}  // namespace verbscope
