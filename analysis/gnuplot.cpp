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
#include <string_view>

#include "common/error.hpp"

namespace verbscope {
namespace {

// The terminal of gnuplot that draws a kind, and how its files end when they are whole.
struct Terminal {
  const char* words;
  std::string_view end;
};

Terminal terminal(FileKind kind) {
  if (kind == FileKind::svg) return {"svg size 900,560 noenhanced background '#ffffff'", "</svg>"};
  return {"pdfcairo size 6.5in,4in noenhanced", "%%EOF"};
}

// Gives the script to gnuplot, whose figure goes into `figure`.
void run_gnuplot(const std::string& script, std::FILE* figure) {
  std::signal(SIGPIPE, SIG_IGN);  // no gnuplot: writing fails, and pclose says why
  const std::string command = fmt::format("gnuplot >/proc/{}/fd/{}", getpid(), fileno(figure));
  std::FILE* pipe = ::popen(command.c_str(), "w");
  if (pipe == nullptr) throw_errno("cannot start gnuplot", errno);
  const bool written = std::fwrite(script.data(), 1, script.size(), pipe) == script.size();
  const int status = ::pclose(pipe);
  constexpr int kNoSuchCommand = 127;
  if (WIFEXITED(status) && WEXITSTATUS(status) == kNoSuchCommand)
    fail("gnuplot is not installed (Debian: gnuplot-nox)");
  if (!written || status != 0) fail("gnuplot failed; what it said is above");
}

}  // namespace

// In single quotes gnuplot takes nothing for a command but the quote, which is doubled.
std::string gnuplot_text(const std::string& text) {
  std::string out = "'";
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < ' ') {
      out += ' ';
    } else {
      out += c == '\'' ? "''" : std::string(1, c);
    }
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

FileKind figure_kind(const std::filesystem::path& out) {
  if (out.extension() == ".svg") return FileKind::svg;
  if (out.extension() == ".pdf") return FileKind::pdf;
  fail_usage("--out {}: expected a name that ends in .svg or .pdf", out.string());
}

void draw_with_gnuplot(const std::filesystem::path& out, const std::string& script) {
  const FileKind kind = figure_kind(out);
  check_output("--out", out, kind);
  OutputFile file(out);
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> drawn(std::tmpfile(), std::fclose);
  if (!drawn) throw_errno("cannot make a temporary file", errno);
  run_gnuplot(fmt::format("set terminal {}\n", terminal(kind).words) + script, drawn.get());
  std::string text;
  std::array<char, 1 << 16> block{};
  for (std::size_t n = 0; (n = std::fread(block.data(), 1, block.size(), drawn.get())) > 0;) {
    text.append(block.data(), n);
  }
  constexpr std::size_t kLastBytes = 32;
  if (text.find(terminal(kind).end, text.size() - std::min(text.size(), kLastBytes)) == text.npos) {
    fail("cannot write {}: gnuplot did not finish the figure; is the temporary folder full?", out.string());
  }
  file.write(text);
  file.commit();
}

}  // namespace verbscope
