// The benchmarks that there are, where their binaries are, and what those say of themselves.
#pragma once

#include <array>
#include <filesystem>
#include <string>

#include "harness/sweep/benchmark_spec.hpp"

namespace verbscope {

inline constexpr std::array kBenchmarks = {"send_rate",    "recv_rate",        "write_rate", "read_rate",
                                           "verb_latency", "echo_rate",        "wqe_cache",  "qp_scaling",
                                           "atomic_rate",  "write_visibility", "sequencer",  "kv_atomic"};

// The path of a benchmark's binary in `folder`. Throws for a name that is not in kBenchmarks.
std::filesystem::path benchmark_binary(const std::filesystem::path& folder, const std::string& benchmark);

// Runs `binary --describe`. Throws when it fails, takes more than ten seconds, or prints something else.
BenchmarkSpec describe_benchmark(const std::filesystem::path& binary);

}  // namespace verbscope
