// A point for each of many payloads (--all), one after the other, between the same two programs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "microbench/bench/options.hpp"

namespace verbscope {

inline constexpr std::uint32_t kLastOfAll = 1u << 23;  // bytes: where perftest's rates end, too

// Registers the option, without which there is one point.
void add_all_sizes(OptionTable& table, bool& all, const std::string& last = "2^23");

// 2, 4, 8 ... bytes up to --size, by default to `last`. Throws UsageError.
std::vector<std::uint32_t> all_sizes(const Options& options, std::uint32_t last = kLastOfAll);

}  // namespace verbscope
