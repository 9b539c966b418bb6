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
// The expression for the name of a file, whatever characters it has.
std::string gnuplot_file_name(const std::string& name);
// The named block of data "$NAME" with a line for each row, or for each x.
std::string gnuplot_data(const std::string& name, const std::vector<std::vector<double>>& rows);
std::string gnuplot_data(const std::string& name, const std::map<double, double>& points);
// The colour of a figure's n-th curve: Okabe and Ito's, apart for every kind of colour vision, again from the eighth
// on.
inline constexpr std::size_t kGnuplotColors = 7;
const char* gnuplot_color(std::size_t n);

// The size of a figure in inches, and its font: of a paper's column, say, {3.3, 2.4} and "Times", 8 points.
struct FigureForm {
  double width_in = 6.5, height_in = 4.2;
  std::string font = "sans-serif";
  double points = 10;
};
// "3.3x2.4", in inches, from 1 to 40; a figure less than 4.5 inches wide has a font of 8 points. Throws a UsageError.
void set_size(FigureForm& form, const std::string& text);
// "Times", "Times,8" or ",8": a name, points from 4 to 40, or both. Throws a UsageError.
void set_font(FigureForm& form, const std::string& text);

// The kind of a figure by its name. Throws a UsageError for one that ends neither in .svg nor in .pdf.
FileKind figure_kind(const std::filesystem::path& out);
inline constexpr double kPointsPerInch = 72;
// Another size of a figure's font, as gnuplot's "font" takes it: ",9".
std::string gnuplot_font_size(const std::filesystem::path& out, double points);
// The command that chooses the kind of a figure, by its name, and its form.
std::string gnuplot_terminal(const std::filesystem::path& out, const FigureForm& form);
// Draws what the script says into `out`. Throws what figure_kind and check_output throw, and Error when there is no
// gnuplot or it fails, of which nothing that it prints is shown: a figure that was there before is left as it is.
void draw_with_gnuplot(const std::filesystem::path& out, const std::string& script, const FigureForm& form = {});

}  // namespace verbscope
