// Runs what reproduces the published figures of a paper, and its sweeps in configs/sweeps/PAPER as curves.
#pragma once

#include <cstdio>
#include <filesystem>
#include <string>

namespace verbscope {

struct ReproduceOptions {
  std::string paper;       // its name in configs/published.json
  std::string out;         // results file; empty: results/local/PAPER.jsonl
  int jobs = 0;            // points that run side by side; 0: one for each CPU
  bool rows_only = false;  // leaves out the curves
};

// Runs the benchmarks of `folder` on the simulated clusters and prints the curves and a row a published figure. Returns
// 0 when every point ran and every figure is within its limit, else 1; kExitInterrupted after SIGINT or SIGTERM. Throws
// UsageError for a paper without figures, with the names of those that have some.
int reproduce_paper(const ReproduceOptions& options, const std::filesystem::path& folder, std::FILE* out);

}  // namespace verbscope
