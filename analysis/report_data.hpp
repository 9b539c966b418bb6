// The data of the page of `verbscope report` (analysis/report/), made of records.
#pragma once

#include <vector>

#include "analysis/compare.hpp"

namespace verbscope {

// {"points", "figures", "titles", "summary", "provenance", "byte_kinds", "event_groups", "resources"}: a point a row,
// with its comparison, explanation and latency; the figures of papers (analysis/paper_figures.hpp); what stands at an
// axis for each option and result; the findings as sentences; each place and program that made records once; and the
// names of what a point has as arrays.
Json report_data(const std::vector<CompareRow>& rows, const std::vector<PublishedPoint>& published);

}  // namespace verbscope
