// Which benchmarks there are, and where their binaries and ours live.
#pragma once

#include <array>
#include <filesystem>
#include <string>

namespace verbscope {

inline constexpr std::array kBenchmarks = {"send_rate",    "recv_rate",        "write_rate", "read_rate",
                                           "verb_latency", "echo_rate",        "wqe_cache",  "qp_scaling",
                                           "atomic_rate",  "write_visibility", "sequencer",  "kv_atomic"};

// The folder of the running program: the benchmarks' binaries are its neighbours.
std::filesystem::path program_folder();

// The path of a benchmark's binary in `folder`. Throws for a name that is not in kBenchmarks.
std::filesystem::path benchmark_binary(const std::filesystem::path& folder, const std::string& benchmark);

}  // namespace verbscope
