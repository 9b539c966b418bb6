// `verbscope report`: records as a single page that works offline (analysis/report/).
#pragma once

#include <string>
#include <vector>

#include "analysis/compare.hpp"
#include "common/record.hpp"

namespace verbscope {

struct ReportAssets {
  std::string page, style, script, echarts;
};

// Throws Error if the program was built without the chart library.
ReportAssets report_assets();

// Returns {"points", "figures", "titles", "summary", "provenance", "byte_kinds", "event_groups", "resources"}.
// "points": one per row, with comparison, explanation and latency. "figures": see paper_figures. "titles":
// axis titles of options and results. "summary": the findings as sentences. "provenance": each place and program that
// made records, once. The others: names for the arrays in a point.
Json report_data(const std::vector<CompareRow>& rows, const std::vector<PublishedPoint>& published);

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

// The whole page: style, scripts, chart library, the shown data, and the records themselves. Texts of records are
// embedded as data, never as markup. Omits records beyond `max_record_bytes`, with a note on the page.
std::string report_page(const std::vector<const Record*>& records, std::size_t max_record_bytes = 64u << 20);

}  // namespace verbscope
