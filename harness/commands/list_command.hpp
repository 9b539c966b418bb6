// `verbscope list`: the benchmarks with their options, the clusters, the sweeps.
#pragma once

#include <cstdio>
#include <filesystem>

namespace verbscope {

// What is broken (a benchmark that is not built, a sweep that does not parse) has its reason on its line. Returns 0.
int list_all(const std::filesystem::path& folder, std::FILE* out);

}  // namespace verbscope
