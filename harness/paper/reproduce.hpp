// Published rows beside the figures of the simulated clusters, and the verdict whether those are good enough.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/published.hpp"

namespace verbscope {

struct Reproduced {
  const PublishedPoint* row = nullptr;
  std::optional<double> value;  // absent: it failed, or was not run
  std::string failure;          // why it failed
  std::string missing{};        // why it was not run
};

// Whether the row is within its limit, of a row that ran; one that failed never is, one that was not run, or ran on
// this machine instead of its own, always.
bool within_limits(const Reproduced& reproduced);

// A table by cluster, the rows that were not run with the reason, and a summary, which says "all" only when no row is
// missing. Ends with a newline.
std::string reproduction_text(const std::vector<Reproduced>& rows, std::size_t width = 0);

}  // namespace verbscope
