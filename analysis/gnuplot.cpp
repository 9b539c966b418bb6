#include "analysis/gnuplot.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <memory>
#include <optional>
#include <string_view>

#include "common/error.hpp"
#include "common/text.hpp"

namespace verbscope {
namespace {

constexpr double kPixelsPerInch = 96;  // CSS pixels

// The last characters of a complete figure.
std::string_view end_of(FileKind kind) {
  return kind == FileKind::svg ? "</svg>" : "%%EOF";
}

// A number from `min` to `max`, or nothing.
std::optional<double> number_in(const std::string& text, double min, double max) {
  const std::optional<double> value = number_from<double>(text);
  return value && *value >= min && *value <= max ? value : std::nullopt;
}

// Runs gnuplot on the script and writes the figure to `figure`. Discards gnuplot's standard error: it quotes the
// script, which the user did not write.
void run_gnuplot(const std::string& script, std::FILE* figure) {
  std::signal(SIGPIPE, SIG_IGN);  // without gnuplot the write fails, and pclose returns the reason
  const std::string command = fmt::format("gnuplot >/proc/{}/fd/{} 2>/dev/null", getpid(), fileno(figure));
  std::FILE* pipe = ::popen(command.c_str(), "w");
  if (pipe == nullptr) throw_errno("cannot start gnuplot", errno);
  const bool written = std::fwrite(script.data(), 1, script.size(), pipe) == script.size();
  const int status = ::pclose(pipe);
  constexpr int kNoSuchCommand = 127;
  if (WIFEXITED(status) && WEXITSTATUS(status) == kNoSuchCommand)
    fail("gnuplot is not installed (Debian: gnuplot-nox)");
  if (!written || status != 0) {
    fail("gnuplot could not draw the figure (exit code {}); it must be version 5.4 or later",
         WIFEXITED(status) ? WEXITSTATUS(status) : -1);
  }
}

// Font sizes are in pixels in SVG and in points in PDF.
std::string gnuplot_font_size(const std::filesystem::path& out, double points) {
  const double scale = figure_kind(out) == FileKind::svg ? kPixelsPerInch / kPointsPerInch : 1;
  return fmt::format(",{:.1f}", points * scale);
}

}  // namespace

std::string gnuplot_text(const std::string& text) {
  std::string line = text;
  std::ranges::replace_if(
      line, [](char c) { return static_cast<unsigned char>(c) < ' '; }, ' ');
  return gnuplot_file_name(line);
}

// Inside single quotes only the quote itself is special. Double quotes allow escapes but also execute text in
// backquotes, so only characters that need an escape are put in them.
std::string gnuplot_file_name(const std::string& name) {
  std::string out = "'";
  for (const char c : name) {
    const bool escaped = static_cast<unsigned char>(c) < ' ' || c == '\x7f' || c == '\'';
    out += escaped ? fmt::format("'.\"\\{:03o}\".'", static_cast<unsigned char>(c)) : std::string(1, c);
  }
  return out + "'";
}

std::string gnuplot_data(const std::string& name, const std::vector<std::vector<double>>& rows) {
  std::string out = fmt::format("${} << EOD\n", name);
  for (const std::vector<double>& row : rows) out += fmt::format("{}\n", fmt::join(row, " "));
  return out + "EOD\n";
}

std::string gnuplot_data(const std::string& name, const std::map<double, double>& points) {
  std::vector<std::vector<double>> rows;
  for (const auto& [x, y] : points) rows.push_back({x, y});
  return gnuplot_data(name, rows);
}

const char* gnuplot_color(std::size_t n) {
  constexpr std::array<const char*, kGnuplotColors> kColors = {"#0072b2", "#e69f00", "#009e73", "#cc79a7",
                                                               "#56b4e9", "#d55e00", "#000000"};
  return kColors[n % kColors.size()];
}

void set_size(FigureForm& form, const std::string& text) {
  constexpr double kMin = 1, kMax = 40;
  const std::size_t cross = std::min(text.find('x'), text.size());
  const auto width = number_in(text.substr(0, cross), kMin, kMax);
  const auto height = cross < text.size() ? number_in(text.substr(cross + 1), kMin, kMax) : std::nullopt;
  if (!width || !height) {
    fail_usage("--size: expected WIDTHxHEIGHT in inches, each from {} to {}, as 3.3x2.4, got \"{}\"", kMin, kMax, text);
  }
  constexpr double kNarrow = 4.5, kSmallPoints = 8;
  form.width_in = *width;
  form.height_in = *height;
  if (*width < kNarrow) form.points = kSmallPoints;
}

void set_font(FigureForm& form, const std::string& text) {
  constexpr double kMin = 4, kMax = 40;
  const std::size_t comma = std::min(text.find(','), text.size());
  const auto points = comma < text.size() ? number_in(text.substr(comma + 1), kMin, kMax) : std::optional(form.points);
  if (!points || text.empty()) {
    fail_usage("--font: expected NAME, NAME,POINTS or ,POINTS with {} to {} points, got \"{}\"", kMin, kMax, text);
  }
  if (comma > 0) form.font = text.substr(0, comma);
  form.points = *points;
}

std::string gnuplot_terminal(const std::filesystem::path& out, const FigureForm& form) {
  const std::string font = gnuplot_text(form.font + gnuplot_font_size(out, form.points));
  if (figure_kind(out) == FileKind::svg) {
    return fmt::format("set terminal svg size {:.0f},{:.0f} noenhanced background '#ffffff' font {}\n",
                       form.width_in * kPixelsPerInch, form.height_in * kPixelsPerInch, font);
  }
  return fmt::format("set terminal pdfcairo size {}in,{}in noenhanced font {}\n", form.width_in, form.height_in, font);
}

std::string GnuplotLegend::font() const {
  return gnuplot_text(gnuplot_font_size(out_, font_points()));
}

double GnuplotLegend::sample_width(const Entry& entry) const {
  constexpr double kSample = 3;  // width of a line with its mark, relative to the font size
  return entry.line.empty() && entry.mark.empty() ? 0 : kSample * font_points();
}

double GnuplotLegend::height() const {
  return static_cast<double>(rows().size()) * line_height();
}

std::vector<std::vector<GnuplotLegend::Placed>> GnuplotLegend::rows() const {
  constexpr double kEdge = 4;   // points at the left and right edge
  constexpr double kGap = 1.2;  // between entries, relative to the font size
  std::vector<std::vector<Placed>> rows(1);
  double x = kEdge;
  for (const Entry& entry : entries_) {
    const double letters = static_cast<double>(entry.text.size());
    const double room = sample_width(entry) + kGnuplotLetterWidth * letters * font_points();
    if (!rows.back().empty() && x + room > form_.width_in * kPointsPerInch - kEdge) {
      rows.emplace_back();
      x = kEdge;
    }
    rows.back().push_back({x, &entry});
    x += room + kGap * font_points();
  }
  return rows;
}

std::string GnuplotLegend::text() const {
  constexpr double kLineShare = 0.75;  // of the sample
  const double width = form_.width_in * kPointsPerInch, height = form_.height_in * kPointsPerInch;
  std::string out;
  const auto all = rows();
  for (std::size_t row = 0; row < all.size(); ++row) {
    const double y = (static_cast<double>(all.size() - row) - 0.5) * line_height() / height;
    for (const auto& [x, entry] : all[row]) {
      const double end = x + kLineShare * sample_width(*entry);
      if (!entry->line.empty()) {
        out += fmt::format("set arrow from screen {:.4f},screen {:.4f} to screen {:.4f},screen {:.4f} nohead {}\n",
                           x / width, y, end / width, y, entry->line);
      }
      if (!entry->mark.empty()) {
        out += fmt::format("set label '' at screen {:.4f},screen {:.4f} point {}\n", (x + end) / 2 / width, y,
                           entry->mark);
      }
      out += fmt::format("set label {} at screen {:.4f},screen {:.4f} left font {}\n", gnuplot_text(entry->text),
                         (x + sample_width(*entry)) / width, y, font());
    }
  }
  return out;
}

FileKind figure_kind(const std::filesystem::path& out) {
  if (out.extension() == ".svg") return FileKind::svg;
  if (out.extension() == ".pdf") return FileKind::pdf;
  fail_usage("--out {}: expected a name that ends in .svg or .pdf", out.string());
}

void draw_with_gnuplot(const std::filesystem::path& out, const std::string& script, const FigureForm& form) {
  const FileKind kind = figure_kind(out);
  check_output("--out", out, kind);
  OutputFile file(out);
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> drawn(std::tmpfile(), std::fclose);
  if (!drawn) throw_errno("cannot make a temporary file", errno);
  run_gnuplot(gnuplot_terminal(out, form) + script, drawn.get());
  std::string text;
  std::array<char, 1 << 16> block{};
  for (std::size_t n = 0; (n = std::fread(block.data(), 1, block.size(), drawn.get())) > 0;) {
    text.append(block.data(), n);
  }
  constexpr std::size_t kLastBytes = 32;
  if (text.find(end_of(kind), text.size() - std::min(text.size(), kLastBytes)) == text.npos) {
    fail("cannot write {}: gnuplot did not finish the figure; the temporary folder may be full", out.string());
  }
  file.write(text);
  file.commit();
}

}  // namespace verbscope
