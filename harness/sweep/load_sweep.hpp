// A sweep opened, changed as the command line says, and compared with its benchmarks.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/sweep/sweep.hpp"

namespace verbscope {

struct LoadOptions {
  std::string sweep;                  // a path, or a name in configs/sweeps
  std::optional<std::uint64_t> seed;  // instead of the sweep's
  std::optional<int> repetitions;     // instead of the sweep's
  std::vector<std::string> set;       // key=value, for every point
};

// A sweep, and what its benchmarks say of themselves.
struct LoadedSweep {
  Sweep sweep;
  std::map<std::string, BenchmarkSpec> specs;  // by benchmark
};

// Asks the benchmarks in `folder`. Throws one line for a sweep that cannot be read and for what a benchmark cannot do.
LoadedSweep load_sweep(const LoadOptions& options, const std::filesystem::path& folder);

}  // namespace verbscope
