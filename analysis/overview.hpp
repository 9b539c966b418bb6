// Overview of several explained points: one line per point, and the places along each swept option where the limit
// changes.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "analysis/explain.hpp"

namespace verbscope {

// Points that differ in one option only, sorted by its value.
struct Series {
  std::string option;
  std::vector<const Explanation*> points;
};

// For each option with several values: all series of at least two points.
std::vector<Series> series_of(const std::vector<Explanation>& points);

// The limits along a series: "size: to 64: the NIC's responder units; from 128: wire bandwidth, outbound". A drop of
// the rate is a cliff: "cliff at 48 threads, 30 after 60 Mops: WQE cache, 0.7 re-reads per operation".
std::string changes_along(const Series& series);

// The table of all points, then each series in which the limit changes or the rate drops. `width`: see TextTable::text.
std::string overview_text(const std::vector<Explanation>& points, std::size_t width);

}  // namespace verbscope
