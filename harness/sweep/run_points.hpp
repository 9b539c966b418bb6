// Runs the points of a sweep, one after another or several at the same time. Writes records in order and retries failed
// points.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/record.hpp"
#include "harness/process/stop.hpp"
#include "harness/sweep/progress.hpp"

namespace verbscope {

struct PointsOptions {
  std::size_t jobs = 1;  // points that run at the same time
  int retries = 0;       // further attempts at a point that failed
  bool fail_fast = false;
};

struct PointsOutcome {
  std::size_t ended = 0;   // points with a record
  std::size_t failed = 0;  // points whose record is failed
  std::string reason;      // of the first failed point
  bool interrupted = false;
};

// Runs one point once and returns its record; empty if interrupted.
using RunPoint = std::function<std::optional<Record>(const Point&)>;

// Runs the points. Stops early on `stop`, and with fail_fast after the first point whose last attempt failed. A record
// that needed several attempts has environment.failed_attempts with the reason of each. Throws what the writer throws.
PointsOutcome run_points(const std::vector<Point>& points, const RunPoint& run, const PointsOptions& options,
                         ResultsWriter& writer, Progress& progress, StopSource& stop);

// The outcome of a point in a few words: its rate, or the reason of its failure.
std::string outcome_text(const Record& record);

// `out`; if empty, results/local/NAME.jsonl, whose folder is created. Throws if that fails.
std::filesystem::path results_path(const std::string& out, const std::string& name);

}  // namespace verbscope
