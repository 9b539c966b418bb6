// Published rows beside the figures of the simulated clusters, and the verdict whether those are good enough.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/published.hpp"

namespace verbscope {

// The deviation that is allowed, in percent: of a figure that a parameter was fitted to, and of one that is predicted.
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
