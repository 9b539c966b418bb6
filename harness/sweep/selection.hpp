// The points of a sweep that a run takes.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "harness/sweep/sweep.hpp"

namespace verbscope {

// A part of the points: those whose place in the list leaves `index` when divided by `count`.
struct Share {
  std::size_t index = 0;
  std::size_t count = 1;
};
// "2/8" is the share of index 2 and count 8. Throws UsageError.
Share parse_share(const std::string& text);

struct SelectOptions {
  std::string points;   // a file of point identities, one a line: only these run; empty: all
  Share share;          // the part of those points that runs
  bool resume = false;  // leaves out points that are ok in the results file
  bool append = false;  // runs points again that are in it
};

// The points to run now: the sweep's, less what `points`, `share` and `resume` leave out, in this order: a share is the
// same points whatever has finished.
struct Selection {
  std::vector<Point> points;
  std::size_t finished = 0;  // points that resume leaves out
};

// Throws one line when the sweep is not for the fabric or no line of the file of points is one of its points, and a
// UsageError when some of the points are in the results file and neither `resume` nor `append` says what that means.
Selection select_points(const SelectOptions& options, const Sweep& sweep, const std::string& fabric,
                        const std::filesystem::path& results);

}  // namespace verbscope
