// Draws figures with gnuplot, and writes texts in its language.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/files.hpp"

namespace verbscope {

// A gnuplot string that prints `text` literally.
std::string gnuplot_text(const std::string& text);
// A gnuplot expression for a file name; handles all characters.
std::string gnuplot_file_name(const std::string& name);
// A named data block "$NAME" with one line per row, or per x.
std::string gnuplot_data(const std::string& name, const std::vector<std::vector<double>>& rows);
std::string gnuplot_data(const std::string& name, const std::map<double, double>& points);
// Colour of a figure's n-th curve, from the palette of Okabe and Ito for all kinds of colour vision. Repeats after
// kGnuplotColors.
inline constexpr std::size_t kGnuplotColors = 7;
const char* gnuplot_color(std::size_t n);

// Size of a figure in inches, and its font. For a paper's column: {3.3, 2.4} and "Times", 8 points.
struct FigureForm {
  double width_in = 6.5, height_in = 4.2;
  std::string font = "sans-serif";
  double points = 10;
};
// Parses "3.3x2.4": inches, from 1 to 40 each. Figures narrower than 4.5 inches get a font of 8 points. Throws
// UsageError.
void set_size(FigureForm& form, const std::string& text);
// Parses "Times", "Times,8" or ",8": a font name, a size from 4 to 40 points, or both. Throws UsageError.
void set_font(FigureForm& form, const std::string& text);

// Kind of a figure, from its file name. Throws UsageError unless the name ends in .svg or .pdf.
FileKind figure_kind(const std::filesystem::path& out);
inline constexpr double kPointsPerInch = 72;
// The gnuplot command that sets the output format, size and font.
std::string gnuplot_terminal(const std::filesystem::path& out, const FigureForm& form);
// Mean width of a letter, relative to the font size.
inline constexpr double kGnuplotLetterWidth = 0.6;

// The legend below the axes: entries from left to right, in as many rows as they need.
class GnuplotLegend {
 public:
  // The gnuplot styles of an entry's line and mark (one may be empty), and its text.
  struct Entry {
    std::string line, mark, text;
  };

  GnuplotLegend(std::filesystem::path out, const FigureForm& form) : out_(std::move(out)), form_(form) {}

  void add(Entry entry) { entries_.push_back(std::move(entry)); }
  std::size_t entries() const { return entries_.size(); }
  double height() const;     // in points
  std::string font() const;  // in the syntax of gnuplot's "font"
  std::string text() const;  // the commands that draw it

 private:
  struct Placed {
    double x;  // in points from the left
    const Entry* entry;
  };

  std::vector<std::vector<Placed>> rows() const;
  double sample_width(const Entry& entry) const;
  double font_points() const { return 0.9 * form_.points; }
  double line_height() const { return 1.35 * font_points(); }

  std::filesystem::path out_;
  FigureForm form_;
  std::vector<Entry> entries_;
};

// Runs the script and writes the figure to `out`. Throws the errors of figure_kind and check_output, and Error if
// gnuplot is missing or fails. Output of gnuplot is not shown. After an error an older figure is still intact.
void draw_with_gnuplot(const std::filesystem::path& out, const std::string& script, const FigureForm& form = {});

}  // namespace verbscope
