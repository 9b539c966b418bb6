// The list of benchmarks, their binaries, and their descriptions.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "harness/sweep/benchmark_spec.hpp"

namespace verbscope {

// The names of all benchmarks, in the order of verbscope_benchmark() calls in CMake.
std::vector<std::string> benchmark_names();

// The path of a benchmark's binary in `folder`. Throws Error if benchmark_names() does not contain the name.
std::filesystem::path benchmark_binary(const std::filesystem::path& folder, const std::string& benchmark);

// Runs `binary --describe`. Throws if it fails, takes more than ten seconds, or prints anything else.
BenchmarkSpec describe_benchmark(const std::filesystem::path& binary);

}  // namespace verbscope
