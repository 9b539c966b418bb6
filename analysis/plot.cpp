#include "analysis/plot.hpp"

#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <map>
#include <set>

#include "analysis/loads.hpp"
#include "analysis/points.hpp"
#include "common/environment.hpp"

namespace verbscope {
namespace {

// A text in single quotes: gnuplot takes nothing in it for a command but the quote, which is doubled.
std::string quoted(const std::string& text) {
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

struct Curve {
  std::string name;
  std::map<double, double> points, bounds;  // the last repetition counts
};

// The key of option x in the configurations: a time stands there as NAME_s.
std::string config_key(const std::vector<const Record*>& records, const std::string& x) {
  const auto has_number = [&x](const Record* record) { return number_at(record->config, x).has_value(); };
  return std::ranges::any_of(records, has_number) ? x : x + "_s";
}

// The options other than the one under `x` that differ between the records.
std::vector<std::string> varying_options(const std::vector<const Record*>& records, const std::string& x) {
  std::vector<std::string> keys;
  for (const Record* record : records) {
    for (const std::string& key : option_keys(*record)) {
      if (key != x && key + "_s" != x && std::ranges::find(keys, key) == keys.end()) keys.push_back(key);
    }
  }
  std::erase_if(keys, [&records](const std::string& key) {
    return std::ranges::all_of(
        records, [&](const Record* record) { return option_text(*record, key) == option_text(*records.front(), key); });
  });
  return keys;
}

std::vector<Curve> curves_of(const std::vector<const Record*>& records, const std::string& x_key,
                             const PlotRequest& request) {
  const std::vector<std::string> keys = varying_options(records, x_key);
  const std::set<std::string> benchmarks = [&] {
    std::set<std::string> names;
    for (const Record* record : records) names.insert(record->benchmark);
    return names;
  }();
  std::vector<Curve> curves;
  for (const Record* record : records) {
    const auto x = number_at(record->config, x_key), y = number_at(record->result, request.y);
    if (record->status == RecordStatus::failed || !x || !y) continue;
    const auto fabric = record->environment.value("fabric", "");
    std::string name = (benchmarks.size() > 1 ? record->benchmark + " " : "") + fabric;
    if (is_simulated(fabric)) name += " (SIMULATED)";
    for (const std::string& key : keys) name += fmt::format(" {}={}", key, option_text(*record, key));
    auto curve = std::ranges::find(curves, name, &Curve::name);
    if (curve == curves.end()) curve = curves.insert(curves.end(), Curve{name, {}, {}});
    curve->points[*x] = *y;
    const auto prediction = request.y == "rate_mops" ? prediction_of(*record) : std::nullopt;
    if (prediction) curve->bounds[*x] = prediction->bound_mops;
  }
  return curves;
}

std::string data_block(const std::string& name, const std::map<double, double>& points) {
  std::string out = fmt::format("${} << EOD\n", name);
  for (const auto& [x, y] : points) out += fmt::format("{} {}\n", x, y);
  return out + "EOD\n";
}

std::string terminal(const std::filesystem::path& out) {
  if (out.extension() == ".svg") return "svg size 900,560 noenhanced background '#ffffff'";
  if (out.extension() == ".pdf") return "pdfcairo size 6.5in,4in noenhanced";
  fail("--out {}: expected a name that ends in .svg or .pdf", out.string());
}

// The place of the figure while it is drawn.
std::string unfinished(const std::filesystem::path& out) {
  return out.string() + ".part";
}

// The input for gnuplot, which leaves the figure in unfinished(request.out).
std::string plot_script(const std::vector<const Record*>& records, const PlotRequest& request) {
  std::string script =
      fmt::format("set terminal {}\nset output {}\n", terminal(request.out), quoted(unfinished(request.out)));
  const std::string x = config_key(records, request.x);
  const std::vector<Curve> curves = curves_of(records, x, request);
  if (curves.empty()) fail("no record has numbers for both {} (an option) and {} (a result)", request.x, request.y);
  script += fmt::format("set xlabel {}\nset ylabel {}\nset yrange [0:*]\nset grid\nset key outside below\n", quoted(x),
                        quoted(request.y == "rate_mops" ? "Mops" : request.y));
  if (request.logarithmic) script += "set logscale x 2\n";
  // Okabe and Ito's colours, apart for every kind of colour vision.
  constexpr std::array kColors = {"#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#000000"};
  std::string plots;
  for (std::size_t i = 0; i < curves.size(); ++i) {
    const char* color = kColors[i % kColors.size()];
    script += data_block(fmt::format("points{}", i), curves[i].points);
    plots += fmt::format("{}$points{} using 1:2 with linespoints lc rgb '{}' pt {} title {}", i > 0 ? ", " : "plot ", i,
                         color, i % 15 + 4, quoted(curves[i].name));
    if (curves[i].bounds.empty()) continue;
    script += data_block(fmt::format("bounds{}", i), curves[i].bounds);
    plots += fmt::format(", $bounds{} using 1:2 with lines dt 2 lc rgb '{}' title {}", i, color,
                         i == 0 ? "'model bounds'" : "''");
  }
  return script + plots + "\n";
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

void draw_plot(const std::vector<const Record*>& records, const PlotRequest& request) {
  const std::string script = plot_script(records, request);
  const std::filesystem::path part = unfinished(request.out);
  // A gnuplot that cannot write its file prints the figure instead.
  if (!std::ofstream(part)) throw_errno(fmt::format("cannot write {}", request.out.string()), errno);
  try {
    run_gnuplot(script);
    std::error_code error;
    std::filesystem::rename(part, request.out, error);
    if (error) fail("cannot write {}: {}", request.out.string(), error.message());
  } catch (const Error&) {
    std::filesystem::remove(part);
    throw;
  }
}

}  // namespace verbscope
