#include "analysis/gnuplot.hpp"

#include <fmt/format.h>
#include <sys/wait.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <fstream>

#include "common/error.hpp"

namespace verbscope {
namespace {

std::string terminal(const std::filesystem::path& out) {
  if (out.extension() == ".svg") return "svg size 900,560 noenhanced background '#ffffff'";
  if (out.extension() == ".pdf") return "pdfcairo size 6.5in,4in noenhanced";
  fail("--out {}: expected a name that ends in .svg or .pdf", out.string());
}

void run_gnuplot(const std::string& script) {
  std::signal(SIGPIPE, SIG_IGN);  // no gnuplot: writing fails, and pclose says why
  std::FILE* pipe = ::popen("gnuplot", "w");
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

std::string gnuplot_data(const std::string& name, const std::map<double, double>& points) {
  std::string out = fmt::format("${} << EOD\n", name);
  for (const auto& [x, y] : points) out += fmt::format("{} {}\n", x, y);
  return out + "EOD\n";
}

const char* gnuplot_color(std::size_t n) {
  constexpr std::array<const char*, kGnuplotColors> kColors = {"#0072b2", "#e69f00", "#009e73", "#cc79a7",
                                                               "#56b4e9", "#d55e00", "#000000"};
  return kColors[n % kColors.size()];
}

void draw_with_gnuplot(const std::filesystem::path& out, const std::string& script) {
  const std::filesystem::path part = out.string() + ".part";
  const std::string head = fmt::format("set terminal {}\nset output {}\n", terminal(out), gnuplot_text(part.string()));
  // A gnuplot that cannot write its file prints the figure instead.
  if (!std::ofstream(part)) throw_errno(fmt::format("cannot write {}", out.string()), errno);
  try {
    run_gnuplot(head + script);
    std::error_code error;
    std::filesystem::rename(part, out, error);
    if (error) fail("cannot write {}: {}", out.string(), error.message());
  } catch (const Error&) {
    std::filesystem::remove(part);
    throw;
  }
}

}  // namespace verbscope
