// Figures through gnuplot: its program, and the texts of its language.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "common/output_file.hpp"

namespace verbscope {

// A text that gnuplot takes for nothing else.
std::string gnuplot_text(const std::string& text);
// The named block of data "$NAME" with a line for each row, or for each x.
std::string gnuplot_data(const std::string& name, const std::vector<std::vector<double>>& rows);
std::string gnuplot_data(const std::string& name, const std::map<double, double>& points);
// The colour of a figure's n-th curve: Okabe and Ito's, apart for every kind of colour vision, again from the eighth
// on.
inline constexpr std::size_t kGnuplotColors = 7;
const char* gnuplot_color(std::size_t n);

// The kind of a figure by its name. Throws a UsageError for one that ends neither in .svg nor in .pdf.
FileKind figure_kind(const std::filesystem::path& out);
// Draws what the script says into `out`. Throws what figure_kind and check_output throw, and Error when there is no
// gnuplot or it fails: a figure that was there before is left as it is.
void draw_with_gnuplot(const std::filesystem::path& out, const std::string& script);

}  // namespace verbscope
