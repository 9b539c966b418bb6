// Records as curves against one option: which points belong together, what they are called, and what is known beside
// them from the model and from papers.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/published.hpp"
#include "common/record.hpp"

namespace verbscope {

// What there is at one x.
struct CurveSpot {
  const Record* record = nullptr;             // the first of the repetitions
  std::vector<double> values;                 // of all repetitions, one at least
  std::optional<double> bound_mops;           // the model's, of rates only
  const PublishedPoint* published = nullptr;  // the figure of a paper for the same quantity
};

struct Curve {
  std::string file;               // Record::file
  std::string benchmark, fabric;  // the fabric as FabricNames has it
  std::string rest;               // the label, or the options that differ: "connection=UD qp=4"; may be empty
  std::string name;               // what tells it from the other curves, never empty
  bool simulated = false;
  std::map<double, CurveSpot> spots;  // by x
};

// The curves of result `y` against option `x` (keys of analysis/keys.hpp): one for each file, benchmark, fabric, label
// of the sweep, and set of those other options that differ among the points with that file, benchmark, fabric and
// label. In the order of the records; records that failed or lack x or y as numbers are in none. They point into
// `published`.
std::vector<Curve> curves_of(const std::vector<const Record*>& records, const std::string& x, const std::string& y,
                             const std::vector<PublishedPoint>& published);

}  // namespace verbscope
