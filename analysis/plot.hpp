// `verbscope plot`: groups records into curves and draws a result against one option, with gnuplot.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/gnuplot.hpp"
#include "analysis/published.hpp"
#include "common/record.hpp"

namespace verbscope {

// The data of a curve at one x.
struct CurveSpot {
  const Record* record = nullptr;             // the first of the repetitions
  std::vector<double> values;                 // of all repetitions, at least one
  std::optional<double> bound_mops;           // the model's bound; rates only
  const PublishedPoint* published = nullptr;  // published figure for the same quantity
};

struct Curve {
  std::string file;               // Record::file
  std::string benchmark, fabric;  // fabric name as in FabricNames
  std::string rest;               // the label, or the options that differ: "connection=UD qp=4"; may be empty
  std::string name;               // distinguishes the curve from the others, never empty
  bool simulated = false;
  std::map<double, CurveSpot> spots;  // by x
};

// The curves of result `y` against option `x` (keys of analysis/keys.hpp), in the order of the records. One curve per
// file, benchmark, fabric, sweep label, and combination of the other options. Only options that differ between the
// points of the same file, benchmark, fabric and label count. Skips records that failed or whose x or y is no number.
// The curves point into `published`.
std::vector<Curve> curves_of(const std::vector<const Record*>& records, const std::string& x, const std::string& y,
                             const std::vector<PublishedPoint>& published);

struct PlotRequest {
  std::string x;                        // option on the horizontal axis (find_option_key)
  std::string y;                        // result on the vertical axis (find_result_key); empty: main_result_key
  std::filesystem::path out;            // .svg or .pdf
  std::optional<bool> logarithmic;      // horizontal axis; absent: if its values are geometric
  bool logarithmic_y = false;           // vertical axis
  bool bounds = true;                   // draw the model's bounds of rate_mops as dashed lines
  bool published = true;                // mark published figures
  bool causes = true;                   // number the knees and cliffs of a rate (bends_along)
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

// Draws the curves: each point is the mean of its repetitions, with the confidence interval (mean_interval) as error
// bar. The figure states when and where it was simulated. Throws UsageError if records lack x or y, if a logarithmic
// axis would contain 0, or if the legend leaves no room; and the errors of draw_with_gnuplot. After an error older
// files are still intact.
void draw_plot(const std::vector<const Record*>& records, const PlotRequest& request);

// Draws `curves` of result `y` against option `x`. Throws UsageError if a logarithmic axis would contain 0, or if the
// legend leaves no room.
std::string plot_script(const std::vector<Curve>& curves, const PlotRequest& request, const std::string& x,
                        const std::string& y);

}  // namespace verbscope
