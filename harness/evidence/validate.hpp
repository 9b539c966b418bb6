// `verbscope validate`: runs published and measured rows on the simulated clusters and tells how far off they are.
#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>

namespace verbscope {

struct ValidateOptions {
  std::string only;        // a set (a paper or a measured one) or a cluster; empty: everything
  std::string rows;        // a CSV file whose rows count instead of those that ship; empty: none
  std::size_t sample = 0;  // so many rows, drawn; 0: all
  std::uint64_t seed = 1;  // of the draw
  int jobs = 0;            // runs at the same time; 0: one for each CPU
  std::string out;         // the page that is written; empty: none
  std::string plots;       // the folder of figures of measured curves and ours; empty: none
};

// Runs the benchmarks of `folder` and prints the summary; 0 when no row failed and measured rows keep the goals
// (validation_text.hpp), else 1, and kExitInterrupted after SIGINT or SIGTERM. Throws UsageError for a set or cluster
// that no row is of, with those that there are.
int validate(const ValidateOptions& options, const std::filesystem::path& folder, std::FILE* out);

}  // namespace verbscope
