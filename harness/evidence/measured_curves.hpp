// Measured rows that differ in one column only: curves, with ours beside theirs.
#pragma once

#include <string>
#include <vector>

#include "harness/evidence/evidence.hpp"

namespace verbscope {

struct CurvePair {
  double x = 0, theirs = 0, ours = 0;
};

struct MeasuredCurve {
  std::string source, cluster;
  std::string along;  // the column of x
  std::string rest;   // what is the same for all points: "verb=READ window=8"
  std::vector<CurvePair> points;

  std::string name() const { return source + " " + cluster + " " + rest; }
};

// All curves of at least four points that the outcomes hold: rows of one source that differ in one column of `curves`,
// and in those that go with it, only; by source.
std::vector<MeasuredCurve> measured_curves(const std::vector<EvidenceOutcome>& outcomes);

// Draws the curves, a figure for each source and column (several where there are more curves than colours): theirs as
// points, ours as lines; "SOURCE-COLUMN.svg" in the folder, which is made. Yields their paths. Throws Error without
// gnuplot.
std::vector<std::filesystem::path> draw_curves(const std::vector<MeasuredCurve>& curves,
                                               const std::filesystem::path& folder);

}  // namespace verbscope
