// What runs of a point on simulated copies of its cluster say: as it is, with twice of a resource, with other options.
// These are values; who runs the point again is harness/what_if.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/advice.hpp"

namespace verbscope {

// What one run brought: twice of these resources, of which each stands for its capacity().
struct TriedTwice {
  std::vector<Resource> doubled;
  double gain = 1;  // against the base run
};

struct WhatIf {
  std::string not_run;    // why the closed form stays the answer, a clause; empty: limits and gains are those of runs
  std::string cluster;    // that was copied: a name, or the path of a profile
  double base_mops = 0;   // the point as it is; 0: it did not run
  std::size_t runs = 0;   // different points that were simulated
  double seconds = 0;     // that they took here
  Diagnosis diagnosis{};  // with the limits that the runs showed
  std::vector<TriedTwice> tried;
  std::vector<Advice> advice;       // the best first
  std::vector<std::string> failed;  // runs that failed: what was tried, and why it failed
};

}  // namespace verbscope
