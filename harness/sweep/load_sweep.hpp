// A sweep opened, changed as the command line says, and compared with its benchmarks.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "harness/sweep/sweep.hpp"

namespace verbscope {

struct LoadOptions {
  std::string sweep;  // a path, a name in configs/sweeps, or benchmarks whose points `vary` and `set` make: "a,b"
  std::optional<std::uint64_t> seed;  // instead of the sweep's
  std::optional<int> repetitions;     // instead of the sweep's
  std::vector<std::string> set;       // key=value, for every point
  std::vector<std::string> vary;      // key=value,value
};

// Asks the benchmarks in `folder`, whose descriptions become the sweep's `specs`. Throws one line for a sweep that
// cannot be read, for a simulated cluster that is not there and for what a benchmark cannot do.
Sweep load_sweep(const LoadOptions& options, const std::filesystem::path& folder);

// The file of the sweep; nothing where its name means benchmarks.
std::optional<std::filesystem::path> sweep_file(const std::string& name);

}  // namespace verbscope
