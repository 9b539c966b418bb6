// The figures of papers that records reproduce, for the page of `verbscope report`.
#pragma once

#include <string>
#include <vector>

#include "analysis/compare.hpp"

namespace verbscope {

// Whether a row's `where`, "Table 4, Fig 12a", names the figure "Fig 12", with or without the letter of a part.
bool names_figure(const std::string& where, const std::string& figure);

// The figure that the record's sweep makes, "atc16 Fig 12"; empty when it makes none.
std::string figure_of(const Record& record);

// One for each figure that a record's sweep makes: {"id" as figure_of has it, "title", "along", the option of its
// horizontal axis, "results", the keys that it shows, "rows"}; then, where a record reproduces published
// rows, one of all those rows, without a chart ("along" is null). A row has {"where", "what", "cluster", "published" as
// text, "use", "ours" or null with the reason under "why", "deviation", "point", an index of `rows`, or null}.
Json paper_figures(const std::vector<CompareRow>& rows, const std::vector<PublishedPoint>& published);

}  // namespace verbscope
