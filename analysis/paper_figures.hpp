// Figures of papers that the records reproduce, for the page of `verbscope report`.
#pragma once

#include <string>
#include <vector>

#include "analysis/compare.hpp"

namespace verbscope {

// True if `where` ("Table 4, Fig 12a") contains `figure` ("Fig 12"), with or without the letter of a part.
bool names_figure(const std::string& where, const std::string& figure);

// The figure that the record's sweep reproduces ("atc16 Fig 12"); empty if none.
std::string figure_of(const Record& record);

// One object per figure that a record's sweep reproduces: {"id" (figure_of), "title", "along" (the option on the
// horizontal axis), "results" (keys of the shown results), "rows"}. If records reproduce published rows, a last object
// without a chart ("along" is null) contains all of these rows.
//
// A row is {"where", "what", "cluster", "published" (text), "use", "ours" (null: see "why"), "why", "deviation",
// "point" (index into `rows`, or null)}.
Json paper_figures(const std::vector<CompareRow>& rows, const std::vector<PublishedPoint>& published);

}  // namespace verbscope
