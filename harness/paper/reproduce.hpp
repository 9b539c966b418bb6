// Compares published rows with the figures of the simulated clusters, and checks them against their limits.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/published.hpp"

namespace verbscope {

struct Reproduced {
  const PublishedPoint* row = nullptr;
  std::optional<double> value;  // empty: it failed or was not run
  std::string failure;          // why it failed
  std::string missing{};        // why it was not run
};

// True if a row that ran is within its limit. False for a row that failed. True for a row that was not run, or that ran
// on this machine instead of its cluster.
bool within_limits(const Reproduced& reproduced);

// A table by cluster, the rows that were not run with the reason, and a summary. The summary contains "all" only if no
// row is missing. Ends with a newline.
std::string reproduction_text(const std::vector<Reproduced>& rows, std::size_t width = 0);

}  // namespace verbscope
