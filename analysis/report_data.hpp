// Builds the data of the `verbscope report` page (analysis/report/) from records.
#pragma once

#include <vector>

#include "analysis/compare.hpp"

namespace verbscope {

// Returns {"points", "figures", "titles", "summary", "provenance", "byte_kinds", "event_groups", "resources"}.
// "points": one per row, with comparison, explanation and latency. "figures": see analysis/paper_figures.hpp. "titles":
// axis titles of options and results. "summary": the findings as sentences. "provenance": each place and program that
// made records, once. The others: names for the arrays in a point.
Json report_data(const std::vector<CompareRow>& rows, const std::vector<PublishedPoint>& published);

}  // namespace verbscope
