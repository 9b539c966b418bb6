// Loads a sweep, applies the changes of the command line, and checks it against its benchmarks.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "harness/sweep/sweep.hpp"

namespace verbscope {

struct LoadOptions {
  std::string sweep;  // a path, a name in configs/sweeps, or benchmarks "a,b" whose points `vary` and `set` define
  std::optional<std::uint64_t> seed;  // instead of the sweep's
  std::optional<int> repetitions;     // instead of the sweep's
  std::vector<std::string> set;       // key=value, for all points
  std::vector<std::string> vary;      // key=value,value
};

// Runs `--describe` of the benchmarks in `folder` to fill the sweep's `specs`. Throws one line for an unreadable sweep,
// an unknown simulated cluster, and options or values that a benchmark does not accept.
Sweep load_sweep(const LoadOptions& options, const std::filesystem::path& folder);

// The file of the sweep; empty if `name` is a list of benchmarks.
std::optional<std::filesystem::path> sweep_file(const std::string& name);

}  // namespace verbscope
