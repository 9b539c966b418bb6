// What a simulated cluster made of the published rows, and whether that is good enough.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/published.hpp"

namespace verbscope {

// How far a reproduced figure may be off, in percent: what a parameter was fitted to, and what nothing was.
inline constexpr double kCalibratedPercent = 3;
inline constexpr double kPredictedPercent = 10;

struct Reproduced {
  const PublishedPoint* row = nullptr;
  std::optional<double> value;  // absent: it did not run, or nothing reproduces it yet
  std::string failure;          // why, when something should have
};

// Not reproducible rows always are; one that failed never is.
bool within_limits(const Reproduced& reproduced);

// A table by cluster, the rows that nothing reproduces yet with the reason, and a summary. Ends with a newline.
std::string reproduction_text(const std::vector<Reproduced>& rows);

}  // namespace verbscope
