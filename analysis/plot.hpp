// `verbscope plot`: a figure of a result against one option, through gnuplot.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "analysis/gnuplot.hpp"
#include "common/record.hpp"

namespace verbscope {

struct PlotRequest {
  std::string x;                        // the option on the horizontal axis, as find_option_key takes it
  std::string y;                        // the result on the vertical one, as find_result_key; empty: main_result_key
  std::filesystem::path out;            // .svg or .pdf
  std::optional<bool> logarithmic;      // the horizontal axis; absent: where its values are geometric
  bool logarithmic_y = false;           // the vertical one
  bool bounds = true;                   // the model's bounds as dashed lines, of rate_mops
  bool published = true;                // the figures of papers as marks
  bool causes = true;                   // numbers at knees and cliffs of a rate (analysis/bends.hpp)
  std::string title, x_title, y_title;  // empty: none, and what axis_title says
  FigureForm form;
};

// The files that a request writes: the figure, its data as CSV and the script that draws it, which differ in how they
// end.
struct PlotFiles {
  std::filesystem::path figure, data, script;
};
PlotFiles plot_files(const std::filesystem::path& out);
// check_output for each of them.
void check_plot_files(const std::filesystem::path& out, const std::vector<std::filesystem::path>& inputs);

// Has gnuplot draw the curves (analysis/curves.hpp), each point the mean of its repetitions with its interval
// (analysis/mean_interval.hpp) as an error bar. The figure says when and where it is simulated. Throws UsageError when
// records lack x or y, when a logarithmic axis would have 0, and when the legend leaves no room; and what
// draw_with_gnuplot throws: files that were there before are then left as they are.
void draw_plot(const std::vector<const Record*>& records, const PlotRequest& request);

}  // namespace verbscope
