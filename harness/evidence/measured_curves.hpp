// Curves of measured rows that differ in one column, with our figures, and the knees and cliffs of both.
#pragma once

#include <filesystem>
#include <optional>
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
  std::string rest;   // columns with one value for all points: "verb=READ window=8"
  std::vector<CurvePair> points;

  std::string name() const { return source + " " + cluster + " " + rest; }
};

// All curves of at least four points in the outcomes, by source. The rows of a curve have one source and differ only in
// one column of `curves` and in the columns that go with it.
std::vector<MeasuredCurve> measured_curves(const std::vector<EvidenceOutcome>& outcomes);

// Draws one figure per source and column, or several if there are more curves than colours: theirs as points, ours as
// lines. Creates the folder and returns the paths, "SOURCE-CLUSTER-COLUMN.svg". Throws Error without gnuplot.
std::vector<std::filesystem::path> draw_curves(const std::vector<MeasuredCurve>& curves,
                                               const std::filesystem::path& folder);

// Index at which a curve stops rising: the first value of at least 90 % of the largest.
std::size_t knee(const std::vector<double>& values);
// Index of a curve's cliff: the first value after half of the fall from the largest value to the smallest one behind
// it. Absent if the curve falls by less than 15 % of the largest value.
std::optional<std::size_t> cliff(const std::vector<double>& values);

// A knee or a cliff of a measured curve, of ours, or of both. Curves whose knees are both at the first point have none.
struct BendPair {
  std::string kind;                      // "knee" or "cliff"
  const MeasuredCurve* curve = nullptr;  // outlives the pair
  std::optional<double> theirs, ours;    // x of the bend
  bool near = false;                     // both exist, at most one step of the sweep apart

  // "within a step", "elsewhere", "missing", "ours only".
  const char* verdict() const;
};

// The knees and cliffs of the curves, in the order of the curves.
std::vector<BendPair> compare_bends(const std::vector<MeasuredCurve>& curves);

}  // namespace verbscope
