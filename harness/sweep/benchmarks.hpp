// The benchmarks that there are, where their binaries are, and what those say of themselves.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "harness/sweep/benchmark_spec.hpp"

namespace verbscope {

// The names of all benchmarks: those that verbscope_benchmark() declares in CMake, in that order.
std::vector<std::string> benchmark_names();

// The path of a benchmark's binary in `folder`. Throws Error for a name that is not among benchmark_names().
std::filesystem::path benchmark_binary(const std::filesystem::path& folder, const std::string& benchmark);

// Runs `binary --describe`. Throws when it fails, takes more than ten seconds, or prints something else.
BenchmarkSpec describe_benchmark(const std::filesystem::path& binary);

}  // namespace verbscope
