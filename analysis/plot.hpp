// `verbscope plot`: a figure of rates against one option, through gnuplot.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "common/record.hpp"

namespace verbscope {

struct PlotRequest {
  std::string x;                // the option on the horizontal axis
  std::string y = "rate_mops";  // the key of the result on the vertical one
  std::filesystem::path out;    // .svg or .pdf
  bool logarithmic = false;     // the horizontal axis
};

// Has gnuplot draw a curve for each fabric and set of other options, points in order of x, each the mean of its
// repetitions with its interval (analysis/mean_interval.hpp) as an error bar, model bounds as dashed lines (of
// rate_mops). A title says when a curve is simulated. Throws Error when no record has x and y as numbers, for a
// file that is neither SVG nor PDF, and when there is no gnuplot or it fails: a figure that was there before is left as
// it is.
void draw_plot(const std::vector<const Record*>& records, const PlotRequest& request);

}  // namespace verbscope
