// `verbscope plot`: draws a result against one option, with gnuplot.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "analysis/gnuplot.hpp"
#include "common/record.hpp"

namespace verbscope {

struct PlotRequest {
  std::string x;                        // option on the horizontal axis (find_option_key)
  std::string y;                        // result on the vertical axis (find_result_key); empty: main_result_key
  std::filesystem::path out;            // .svg or .pdf
  std::optional<bool> logarithmic;      // horizontal axis; absent: if its values are geometric
  bool logarithmic_y = false;           // vertical axis
  bool bounds = true;                   // draw the model's bounds of rate_mops as dashed lines
  bool published = true;                // mark published figures
  bool causes = true;                   // number the knees and cliffs of a rate (analysis/bends.hpp)
  std::string title, x_title, y_title;  // empty: no title, and axis titles from axis_title
  FigureForm form;
};

// The output files: the figure, its data as CSV, and the gnuplot script. They differ only in their extensions.
struct PlotFiles {
  std::filesystem::path figure, data, script;
};
PlotFiles plot_files(const std::filesystem::path& out);
// Calls check_output for each of them.
void check_plot_files(const std::filesystem::path& out, const std::vector<std::filesystem::path>& inputs);

// Draws the curves (analysis/curves.hpp): each point is the mean of its repetitions, with the confidence interval
// (analysis/mean_interval.hpp) as error bar. The figure states when and where it was simulated. Throws UsageError if
// records lack x or y, if a logarithmic axis would contain 0, or if the legend leaves no room; and the errors of
// draw_with_gnuplot. After an error older files are still intact.
void draw_plot(const std::vector<const Record*>& records, const PlotRequest& request);

}  // namespace verbscope
