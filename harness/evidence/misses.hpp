// Published rows that the simulator misses: known ones with the reason, and others.
#pragma once

#include <string>
#include <vector>

#include "harness/evidence/evidence.hpp"

namespace verbscope {

// Three lists, each omitted if empty: the known misses, with figure, error and reason; known misses that are within
// their limit now; further published rows beyond their limit (PublishedPoint::limit_percent).
std::string miss_lines(const std::vector<EvidenceOutcome>& outcomes);

}  // namespace verbscope
