// The gnuplot commands of a figure of `verbscope plot`, without terminal and output file.
#pragma once

#include <string>
#include <vector>

#include "analysis/curves.hpp"
#include "analysis/plot.hpp"

namespace verbscope {

// Draws `curves` of result `y` against option `x`. Throws UsageError if a logarithmic axis would contain 0, or if the
// legend leaves no room.
std::string plot_script(const std::vector<Curve>& curves, const PlotRequest& request, const std::string& x,
                        const std::string& y);

}  // namespace verbscope
