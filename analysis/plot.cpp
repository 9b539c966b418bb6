#include "analysis/plot.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "analysis/axis_title.hpp"
#include "analysis/csv.hpp"
#include "analysis/curves.hpp"
#include "analysis/keys.hpp"
#include "analysis/mean_interval.hpp"

namespace verbscope {
namespace {

// The look of a curve. Curves of one fabric differ in colour and form, the same curve of another fabric only in whether
// its marks are full, so that a figure printed in grey is read as well.
struct Look {
  const char* color;
  int mark;    // gnuplot's number of a point
  int dashes;  // of the model's bound
};

constexpr std::array kFullMarks = {7, 5, 9, 11, 13, 15}, kHollowMarks = {6, 4, 8, 10, 12, 14};

// Published figures are of four kinds, each with a mark of its own.
struct PublishedKind {
  const char* words;
  int mark;
  double size;
};
constexpr std::array kPublishedKinds = {
    PublishedKind{"published, calibrated", 2, 1.0}, PublishedKind{"published, predicted", 6, 1.7},
    PublishedKind{"published, at least", 8, 1.5}, PublishedKind{"published, at most", 10, 1.5}};

std::size_t kind_of(const PublishedPoint& row) {
  if (row.comparison == Comparison::at_least) return 2;
  if (row.comparison == Comparison::at_most) return 3;
  return row.calibration ? 0 : 1;
}

std::vector<Look> looks_of(const std::vector<Curve>& curves) {
  std::vector<std::string> fabrics, names;
  const auto place_of = [](std::vector<std::string>& known, const std::string& text) {
    const auto found = std::ranges::find(known, text);
    const auto place = static_cast<std::size_t>(found - known.begin());
    if (found == known.end()) known.push_back(text);
    return place;
  };
  const auto is_as_first = [&](const Curve& curve) {
    return curve.benchmark == curves.front().benchmark && curve.rest == curves.front().rest;
  };
  const bool one_name = std::ranges::all_of(curves, is_as_first);  // then clusters differ in colour and form
  std::vector<Look> looks;
  for (const Curve& curve : curves) {
    if (one_name) {
      const std::size_t i = looks.size();
      looks.push_back({.color = gnuplot_color(i), .mark = kFullMarks[i % kFullMarks.size()], .dashes = 2});
      continue;
    }
    const std::size_t fabric = place_of(fabrics, curve.fabric), name = place_of(names, curve.benchmark + curve.rest);
    const std::size_t mark = (name + fabric / 2 * 3) % kFullMarks.size();
    looks.push_back({.color = gnuplot_color(name),
                     .mark = fabric % 2 == 0 ? kFullMarks[mark] : kHollowMarks[mark],
                     .dashes = fabric % 2 == 0 ? 2 : 4});
  }
  return looks;
}

// A line for each x: the mean, and the interval that it is in.
std::vector<std::vector<double>> rows_of(const Curve& curve) {
  std::vector<std::vector<double>> rows;
  for (const auto& [x, spot] : curve.spots) {
    const MeanInterval mean = mean_interval(spot.values);
    rows.push_back({x, mean.mean, mean.low, mean.high});
  }
  return rows;
}

bool is_repeated(const Curve& curve) {
  return std::ranges::any_of(curve.spots, [](const auto& spot) { return spot.second.values.size() > 1; });
}

std::map<double, double> bounds_of(const Curve& curve) {
  std::map<double, double> bounds;
  for (const auto& [x, spot] : curve.spots) {
    if (spot.bound_mops) bounds[x] = *spot.bound_mops;
  }
  return bounds;
}

std::map<double, double> published_of(const Curve& curve, std::size_t kind) {
  std::map<double, double> points;
  for (const auto& [x, spot] : curve.spots) {
    if (spot.published != nullptr && kind_of(*spot.published) == kind) points[x] = spot.published->value;
  }
  return points;
}

// The value that the vertical axis ends at where bounds are far above all that was measured or published: they would
// press the curves flat. None where they fit.
std::optional<double> top_of(const std::vector<Curve>& curves, const PlotRequest& request) {
  constexpr double kMost = 1.4, kRoom = 1.25;  // times the highest value
  double highest = 0, bound = 0;
  for (const Curve& curve : curves) {
    for (const auto& [x, spot] : curve.spots) {
      highest = std::max(highest, mean_interval(spot.values).high);
      if (request.published && spot.published != nullptr) highest = std::max(highest, spot.published->value);
      bound = std::max(bound, spot.bound_mops.value_or(0));
    }
  }
  return request.bounds && bound > kMost * highest ? std::optional(kRoom * highest) : std::nullopt;
}

// "SIMULATED: cib, cx3" with the figure's own title before it.
std::string title_of(const std::vector<Curve>& curves, const PlotRequest& request) {
  std::vector<std::string> simulated;
  for (const Curve& curve : curves) {
    const bool is_new = std::ranges::find(simulated, curve.fabric) == simulated.end();
    if (curve.simulated && is_new) simulated.push_back(curve.fabric);
  }
  if (simulated.empty()) return request.title;
  return fmt::format("{}{}SIMULATED: {}", request.title, request.title.empty() ? "" : " - ",
                     fmt::join(simulated, ", "));
}

// The plot's elements, from behind to before: bounds, curves, figures of papers.
class Script {
 public:
  Script(const std::vector<Curve>& curves, const PlotRequest& request)
      : curves_(curves), looks_(looks_of(curves)), request_(request) {}

  std::string text(const std::string& x) {
    add_axes(x);
    for (std::size_t i = 0; i < curves_.size(); ++i) add_bound(i);
    for (std::size_t i = 0; i < curves_.size(); ++i) add_curve(i);
    for (std::size_t kind = 0; kind < kPublishedKinds.size(); ++kind) add_published(kind);
    add_legend();
    return head_ + fmt::format("plot {}\n", fmt::join(elements_, ", \\\n  "));
  }

 private:
  void add_axes(const std::string& x) {
    const auto title_or = [](const std::string& own, const std::string& key) {
      return gnuplot_text(own.empty() ? axis_title(key) : own);
    };
    const std::string title = title_of(curves_, request_);
    if (!title.empty()) head_ += fmt::format("set title {} offset 0,-0.6\n", gnuplot_text(title));
    head_ += fmt::format(
        "set xlabel {} offset 0,0.8\nset ylabel {} offset 1,0\nset grid lc rgb '#d0d0d0' lw 0.5\nset border lw 0.8\n",
        title_or(request_.x_title, x), title_or(request_.y_title, request_.y));
    // Whole marks at the edges; with a logarithm there is no zero.
    head_ += request_.logarithmic ? "set logscale x 2\nset offsets graph 0.03, graph 0.03, 0, 0\n"
                                  : "set offsets graph 0.02, graph 0.02, 0, 0\n";
    const std::optional<double> top = request_.logarithmic_y ? std::nullopt : top_of(curves_, request_);
    head_ += request_.logarithmic_y ? "set logscale y 10\n"
             : top                  ? fmt::format("set yrange [0:{:.4g}]\n", *top)
                                    : "set yrange [0:*]\n";
  }

  void add_bound(std::size_t i) {
    const std::map<double, double> bounds = bounds_of(curves_[i]);
    if (!request_.bounds || bounds.empty()) return;
    head_ += gnuplot_data(fmt::format("bounds{}", i), bounds);
    elements_.push_back(fmt::format("$bounds{} using 1:2 with lines dt {} lw 1 lc rgb '{}' notitle", i,
                                    looks_[i].dashes, looks_[i].color));
    has_bounds_ = true;
  }

  void add_curve(std::size_t i) {
    const Curve& curve = curves_[i];
    head_ += gnuplot_data(fmt::format("points{}", i), rows_of(curve));
    const bool repeated = is_repeated(curve);
    elements_.push_back(fmt::format("$points{} using {} lc rgb '{}' lw {:.2f} pt {} ps {:.2f} title {}", i,
                                    repeated ? "1:2:3:4 with yerrorlines" : "1:2 with linespoints", looks_[i].color,
                                    scaled(1.5), looks_[i].mark, scaled(0.8), gnuplot_text(curve.name)));
  }

  void add_published(std::size_t kind) {
    if (!request_.published) return;
    for (std::size_t i = 0; i < curves_.size(); ++i) {
      const std::map<double, double> points = published_of(curves_[i], kind);
      if (points.empty()) continue;
      head_ += gnuplot_data(fmt::format("published{}_{}", kind, i), points);
      elements_.push_back(
          fmt::format("$published{}_{} using 1:2 with points {} notitle", kind, i, published_look(kind)));
      has_published_.at(kind) = true;
    }
  }

  std::string published_look(std::size_t kind) const {
    return fmt::format("lc rgb '#000000' lw 0.9 pt {} ps {:.2f}", kPublishedKinds[kind].mark,
                       scaled(kPublishedKinds[kind].size));
  }

  // What lines and marks mean that are no curve: entries of their own, which draw nothing. The legend stands below the
  // axis, in as many columns as its longest entry allows.
  void add_legend() {
    std::vector<std::string> words;
    for (const Curve& curve : curves_) words.push_back(curve.name);
    const auto add = [&](const std::string& look, const char* text) {
      words.emplace_back(text);
      elements_.push_back(fmt::format("keyentry with {} title {}", look, gnuplot_text(text)));
    };
    if (has_bounds_) add("lines dt 2 lw 1 lc rgb '#000000'", "model bounds");
    for (std::size_t kind = 0; kind < kPublishedKinds.size(); ++kind) {
      if (has_published_.at(kind)) add("points " + published_look(kind), kPublishedKinds[kind].words);
    }
    constexpr double kFontPart = 0.9;                     // of the figure's font
    constexpr double kLetterWidth = 0.5, kMarkWidth = 5;  // in sizes of the font
    std::size_t longest = 0;
    for (const std::string& each : words) longest = std::max(longest, each.size());
    const double points = kFontPart * request_.form.points;
    const double column = (kLetterWidth * static_cast<double>(longest) + kMarkWidth) * points;
    const auto columns = static_cast<std::size_t>(std::max(1.0, request_.form.width_in * kPointsPerInch / column));
    head_ += fmt::format(
        "set key outside bottom center vertical maxrows {} Left reverse samplen 1.8 spacing 0.95 width -2 height 0.6 "
        "font {}\n",
        (words.size() + columns - 1) / columns, gnuplot_text(gnuplot_font_size(request_.out, points)));
  }

  // Marks grow with the font.
  double scaled(double size) const { return size * request_.form.points / FigureForm().points; }

  const std::vector<Curve>& curves_;
  std::vector<Look> looks_;
  const PlotRequest& request_;
  std::string head_;
  std::vector<std::string> elements_;
  bool has_bounds_ = false;
  std::array<bool, kPublishedKinds.size()> has_published_{};
};

// A line for each point of each curve. Its head is kFigureDataHead.
std::string data_text(const std::vector<Curve>& curves, const std::string& x, const PlotRequest& request) {
  std::string out = csv_line({"curve", "benchmark", "fabric", "simulated", x, request.y, "low", "high", "repetitions",
                              "bound_mops", "published", "published_id", "published_use"});
  for (const Curve& curve : curves) {
    for (const auto& [at, spot] : curve.spots) {
      const MeanInterval mean = mean_interval(spot.values);
      const PublishedPoint* row = spot.published;
      out += csv_line({curve.name, curve.benchmark, curve.fabric, curve.simulated ? "true" : "false", csv_number(at),
                       csv_number(mean.mean), csv_number(mean.low), csv_number(mean.high),
                       fmt::format("{}", mean.count), csv_number(spot.bound_mops),
                       row == nullptr ? "" : csv_number(row->value), row == nullptr ? "" : row->id,
                       row == nullptr     ? ""
                       : row->calibration ? "calibration"
                                          : "prediction"});
    }
  }
  return out;
}

}  // namespace

PlotFiles plot_files(const std::filesystem::path& out) {
  PlotFiles files{.figure = out, .data = out, .script = out};
  files.data.replace_extension(".csv");
  files.script.replace_extension(".gp");
  return files;
}

void check_plot_files(const std::filesystem::path& out, const std::vector<std::filesystem::path>& inputs) {
  const PlotFiles files = plot_files(out);
  check_output("--out", files.figure, figure_kind(out), inputs);
  check_output("--out", files.data, FileKind::figure_data, inputs);
  check_output("--out", files.script, FileKind::gnuplot_script, inputs);
}

void draw_plot(const std::vector<const Record*>& records, const PlotRequest& request) {
  const PlotFiles files = plot_files(request.out);
  const std::string x = find_option_key("--x", request.x, records);
  const std::vector<PublishedPoint> published = load_published();
  const std::vector<Curve> curves = curves_of(records, x, request.y, published);
  if (curves.empty()) fail("no record has numbers for both {} (an option) and {} (a result)", request.x, request.y);
  const std::string script = Script(curves, request).text(x);
  draw_with_gnuplot(request.out, script, request.form);
  replace_file(files.data, data_text(curves, x, request));
  replace_file(files.script, fmt::format("{}: gnuplot {}\n{}set output {}\n{}", kGnuplotScriptHead,
                                         files.script.filename().string(), gnuplot_terminal(request.out, request.form),
                                         gnuplot_text(files.figure.filename().string()), script));
}

}  // namespace verbscope
