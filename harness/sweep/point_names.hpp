// Short names of a sweep's points for the console.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "harness/sweep/sweep.hpp"

namespace verbscope {

// A name consists of the benchmark, the label, the options that differ between the points, and the repetition:
// "send_rate \"batches\" post_list=16 size=60 #2".
class PointNames {
 public:
  explicit PointNames(const std::vector<Point>& points);
  std::string name(const Point& point) const;

 private:
  std::set<std::string> varying_;
  bool repeated_ = false;
};

}  // namespace verbscope
