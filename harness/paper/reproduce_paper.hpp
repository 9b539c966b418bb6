// Runs the benchmarks that reproduce a paper's published figures, and prints its sweeps in configs/sweeps/PAPER as
// curves.
#pragma once

#include <cstdio>
#include <filesystem>
#include <string>

namespace verbscope {

struct ReproduceOptions {
  std::string paper;       // its name in configs/published.json
  std::string out;         // results file; empty: results/local/PAPER.jsonl
  int jobs = 0;            // points that run at the same time; 0: one per CPU
  bool rows_only = false;  // omits the curves
};

// Runs the benchmarks of `folder` on the simulated clusters and prints the curves and one row per published figure.
// Returns 0 if every point ran and every figure is within its limit, else 1; kExitInterrupted after SIGINT or SIGTERM.
// Throws UsageError for a paper without figures; the message lists the papers with figures.
int reproduce_paper(const ReproduceOptions& options, const std::filesystem::path& folder, std::FILE* out);

}  // namespace verbscope
