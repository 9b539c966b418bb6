// What a validation found, as text: figures of error, bends, what was fitted, what was not run, and every row.
#pragma once

#include <string>
#include <vector>

#include "harness/evidence/evidence.hpp"
#include "harness/evidence/fitted.hpp"
#include "harness/evidence/knees.hpp"

namespace verbscope {

// What measured rows of a cluster should keep: the largest median and 90th percentile of the errors, in percent.
inline constexpr double kMedianGoal = 10;
inline constexpr double kPercentile90Goal = 25;

struct Validation {
  std::vector<EvidenceOutcome> outcomes;
  std::vector<FittedCluster> fitted;
  std::vector<MeasuredCurve> curves;

  // No row failed that was run, and the measured rows of each cluster keep the goals.
  bool good() const;
};

// Tables of errors by set and slice, and by cluster with the verdict; knees and cliffs; parameters; rows that failed or
// were not run, with reasons. Ends with a newline.
std::string validation_summary(const Validation& validation, std::size_t width = 0);

// A line a row: theirs, ours, error, and why there is none. Ends with a newline.
std::string validation_rows(const Validation& validation);

// A page with both of them and the command that made it.
std::string validation_page(const Validation& validation, const std::string& command);

}  // namespace verbscope
