// Loads a sweep, applies the changes of the command line, checks it against its benchmarks, and selects the points to
// run.
#pragma once

#include <cstddef>
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

// A part of the points: those whose number modulo `count` is `index`.
struct Share {
  std::size_t index = 0;
  std::size_t count = 1;
};
// "2/8": index 2, count 8. Throws UsageError.
Share parse_share(const std::string& text);

struct SelectOptions {
  std::string points;   // a file with one point identity per line: only these run; empty: all
  Share share;          // the part of these points that runs
  bool resume = false;  // skip points that are ok in the results file
  bool append = false;  // run points again that are in the results file
};

// The points to run: the sweep's points, reduced by `points`, then `share`, then `resume`. A share therefore has the
// same points whatever has finished.
struct Selection {
  std::vector<Point> points;
  std::size_t finished = 0;  // points that `resume` skips
};

// Throws one line if the sweep is not for the fabric, or if no line of the file `points` is a point of the sweep.
// Throws UsageError if the results file contains some of the points and neither `resume` nor `append` is set.
Selection select_points(const SelectOptions& options, const Sweep& sweep, const std::string& fabric,
                        const std::filesystem::path& results);

}  // namespace verbscope
