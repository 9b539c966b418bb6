// Groups records into curves against one option, names the curves, and adds the model's bounds and published figures.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/published.hpp"
#include "common/record.hpp"

namespace verbscope {

// The data of a curve at one x.
struct CurveSpot {
  const Record* record = nullptr;             // the first of the repetitions
  std::vector<double> values;                 // of all repetitions, at least one
  std::optional<double> bound_mops;           // the model's bound; rates only
  const PublishedPoint* published = nullptr;  // published figure for the same quantity
};

struct Curve {
  std::string file;               // Record::file
  std::string benchmark, fabric;  // fabric name as in FabricNames
  std::string rest;               // the label, or the options that differ: "connection=UD qp=4"; may be empty
  std::string name;               // distinguishes the curve from the others, never empty
  bool simulated = false;
  std::map<double, CurveSpot> spots;  // by x
};

// The curves of result `y` against option `x` (keys of analysis/keys.hpp), in the order of the records. One curve per
// file, benchmark, fabric, sweep label, and combination of the other options. Only options that differ between the
// points of the same file, benchmark, fabric and label count. Skips records that failed or whose x or y is no number.
// The curves point into `published`.
std::vector<Curve> curves_of(const std::vector<const Record*>& records, const std::string& x, const std::string& y,
                             const std::vector<PublishedPoint>& published);

}  // namespace verbscope
