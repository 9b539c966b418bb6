// Several explained points at once: a line for each, and where the limit changes along each option that was swept.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "analysis/explain.hpp"

namespace verbscope {

// Points that differ in one option only, in the order of its values.
struct Series {
  std::string option;
  std::vector<const Explanation*> points;
};

// The series of two points or more of every option that has several values.
std::vector<Series> series_of(const std::vector<Explanation>& points);

// "size: to 64: the NIC's responder units; from 128: wire bandwidth, outbound"; a fall of the rate is a cliff:
// "cliff at 48 threads, 30 after 60 Mops: WQE cache, 0.7 re-reads per operation".
std::string changes_along(const Series& series);

// The table of all points, then each series in which the limit changes or the rate falls. Lines of `width` columns.
std::string overview_text(const std::vector<Explanation>& points, std::size_t width);

}  // namespace verbscope
