// `verbscope reproduce`: runs the benchmarks that reproduce a paper's published figures, checks each figure against its
// limit, and prints the sweeps in configs/sweeps/PAPER as curves.
#pragma once

#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "analysis/published.hpp"
#include "common/record.hpp"
#include "harness/sweep/sweep.hpp"

namespace verbscope {

struct ReproducedRow {
  const PublishedPoint* row = nullptr;
  std::optional<double> value;  // empty: it failed or was not run
  std::string failure;          // why it failed
  std::string missing{};        // why it was not run
};

// True if a row that ran is within its limit. False for a row that failed. True for a row that was not run, or that ran
// on this machine instead of its cluster.
bool within_limits(const ReproducedRow& reproduced);

// A table by cluster, the rows that were not run with the reason, and a summary. The summary contains "all" only if no
// row is missing. Ends with a newline.
std::string reproduction_text(const std::vector<ReproducedRow>& rows, std::size_t width = 0);

// A point of a sweep, with its record.
struct CurvePoint {
  std::string fabric;
  Point point;
  Record record;
};

// The rows are the values of the last key of `vary`, or the entries of `points` if `vary` is empty. A curve is one
// combination of a fabric, an entry of `points`, and a value of each other key of `vary`. It has one column per key of
// `show`, which may be a path into the result ("latency.mean_us"). The last repetition counts. Failed points are listed
// below the table. Ends with a newline.
std::string curve_table(const Sweep& sweep, const std::vector<CurvePoint>& points, std::size_t width = 0);

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
