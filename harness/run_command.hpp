// `verbscope run`: every point of a sweep, one record each.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "common/record.hpp"

namespace verbscope {

struct RunOptions {
  std::string sweep;                           // a path, or a name in configs/sweeps
  std::string hosts;                           // sim:NAME, null or a hosts file
  std::string out;                             // empty: results/local/<sweep>.jsonl
  bool resume = false;                         // leave out points that are ok in `out`
  std::optional<std::uint64_t> seed;           // instead of the sweep's
  std::optional<int> repetitions;              // instead of the sweep's
  std::vector<std::string> set;                // key=value, for every point
  std::chrono::milliseconds timeout{120'000};  // for one point
};

inline constexpr int kExitInterrupted = 130;  // 128 + SIGINT, as shells have it

// Runs the sweep with the binaries in `folder`; progress goes to `out`. Returns 0 when every point is ok, 1 when some
// failed, kExitInterrupted after SIGINT or SIGTERM: the records of the points that had ended are in the file. Throws
// for what is wrong before the first point.
int run_sweep(const RunOptions& options, const std::filesystem::path& folder, std::FILE* out);

// Where records go: `out`, or results/local/NAME.jsonl, whose folder is made. Throws when it cannot be.
std::filesystem::path results_path(const std::string& out, const std::string& name);

// What came of a point, in a few words: its rate, or why it failed.
std::string outcome_text(const Record& record);

}  // namespace verbscope
