// A rate for each of many payloads (--all): points of their own, one after the other, between the same two programs.
#pragma once

#include <cstdint>
#include <vector>

#include "microbench/bench/options.hpp"

namespace verbscope {

void add_all_sizes(OptionTable& table, bool& all);

// 2, 4, 8 ... bytes up to --size, or to 2^23, where perftest ends, too. Throws UsageError.
std::vector<std::uint32_t> all_sizes(const Options& options);

}  // namespace verbscope
