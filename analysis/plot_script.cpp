#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "analysis/axis.hpp"
#include "analysis/explain.hpp"
#include "analysis/plot.hpp"
#include "analysis/points.hpp"
#include "analysis/rate_changes.hpp"
#include "analysis/statistics.hpp"

namespace verbscope {
namespace {

// Appearance of a curve. Curves of one fabric differ in colour and mark. The same curve on another fabric differs only
// in whether its marks are filled, so the figure is readable in grey.
struct CurveStyle {
  const char* color;
  int mark;    // gnuplot's point type
  int dashes;  // dash type of the model's bound
};

constexpr std::array kFullMarks = {7, 5, 9, 11, 13, 15}, kHollowMarks = {6, 4, 8, 10, 12, 14};

// There are four kinds of published figures, each with its own mark.
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

std::vector<CurveStyle> curve_styles(const std::vector<Curve>& curves) {
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
  const bool one_name = std::ranges::all_of(curves, is_as_first);  // then clusters differ in colour and mark
  std::vector<CurveStyle> styles;
  for (const Curve& curve : curves) {
    if (one_name) {
      const std::size_t i = styles.size();
      styles.push_back({.color = gnuplot_color(i), .mark = kFullMarks[i % kFullMarks.size()], .dashes = 2});
      continue;
    }
    const std::size_t fabric = place_of(fabrics, curve.fabric), name = place_of(names, curve.benchmark + curve.rest);
    const std::size_t mark = (name + fabric / 2 * 3) % kFullMarks.size();
    styles.push_back({.color = gnuplot_color(name),
                      .mark = fabric % 2 == 0 ? kFullMarks[mark] : kHollowMarks[mark],
                      .dashes = fabric % 2 == 0 ? 2 : 4});
  }
  return styles;
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

// The range that the vertical axis must show: values with intervals, published figures, and bounds. Much higher bounds
// are left out, because they would flatten the curves.
struct Extent {
  double lowest = std::numeric_limits<double>::infinity(), highest = -lowest;

  void add(double value) {
    lowest = std::min(lowest, value);
    highest = std::max(highest, value);
  }
};

Extent extent_of(const std::vector<Curve>& curves, const PlotRequest& request) {
  constexpr double kMaxBound = 1.4;  // multiple of the highest value
  Extent extent;
  double bound = 0;
  for (const Curve& curve : curves) {
    for (const auto& [x, spot] : curve.spots) {
      const MeanInterval mean = mean_interval(spot.values);
      extent.add(mean.mean);
      extent.highest = std::max(extent.highest, mean.high);
      if (request.published && spot.published != nullptr) extent.add(spot.published->value);
      bound = std::max(bound, spot.bound_mops.value_or(0));
    }
  }
  if (request.bounds && bound <= kMaxBound * extent.highest) extent.add(bound == 0 ? extent.highest : bound);
  return extent;
}

std::set<double> values_of_x(const std::vector<Curve>& curves) {
  std::set<double> values;
  for (const Curve& curve : curves) {
    for (const auto& [x, spot] : curve.spots) values.insert(x);
  }
  return values;
}

bool is_bytes(const std::string& key) {
  return axis_title(key).ends_with("(bytes)");
}

bool is_rate(const std::string& key) {
  return key.ends_with("_mops") || key.ends_with("_per_s");
}

// "SIMULATED: cib, cx3", after the figure's own title.
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

// Collects the elements of the plot from back to front: bounds, curves, published figures, numbers of causes.
class Script {
 public:
  Script(const std::vector<Curve>& curves, const PlotRequest& request, const std::string& x, const std::string& y)
      : curves_(curves),
        styles_(curve_styles(curves)),
        request_(request),
        x_(x),
        y_(y),
        legend_(request.out, request.form) {
    const std::set<double> values = values_of_x(curves);
    across_ = option_axis(values, request.logarithmic.value_or(is_geometric(values)));
    Extent extent = extent_of(curves, request);
    if (y.ends_with(kNanoseconds) && extent.highest >= kManyNanoseconds) per_unit_ = kMicroseconds;
    check_logarithms(values, extent);
    constexpr double kTickLines = 1.6;  // minimum distance of two ticks in lines of text
    const auto ticks = static_cast<std::size_t>(request.form.height_in * kPointsPerInch * 0.6 / (kTickLines * line()));
    up_ = result_axis(extent.lowest * per_unit_, extent.highest * per_unit_, request.logarithmic_y,
                      std::clamp<std::size_t>(ticks, 3, 8));
  }

  std::string text() {
    for (std::size_t i = 0; i < curves_.size(); ++i) add_bound(i);
    for (std::size_t i = 0; i < curves_.size(); ++i) add_curve(i);
    for (std::size_t kind = 0; kind < kPublishedKinds.size(); ++kind) add_published(kind);
    if (request_.causes && is_rate(y_)) add_causes();
    add_legend();
    return axes() + data_ + fmt::format("plot {}\n", fmt::join(elements_, ", \\\n  "));
  }

 private:
  static constexpr std::string_view kNanoseconds = "_ns";
  static constexpr double kManyNanoseconds = 10'000, kMicroseconds = 1e-3;
  void check_logarithms(const std::set<double>& values, const Extent& extent) const {
    if (across_.logarithmic && *values.begin() <= 0)
      fail_usage("--log: {} is {:g} at a point; a logarithmic axis needs values above 0", x_, *values.begin());
    if (request_.logarithmic_y && extent.lowest <= 0)
      fail_usage("--log_y: {} is {:g} at a point; a logarithmic axis needs values above 0", y_, extent.lowest);
  }

  double line() const { return 1.25 * request_.form.points; }
  double width() const { return request_.form.width_in * kPointsPerInch; }
  double height() const { return request_.form.height_in * kPointsPerInch; }

  std::string title_of_y() const {
    const std::string title = request_.y_title.empty() ? axis_title(y_) : request_.y_title;
    constexpr std::string_view kUnit = "(ns)";
    if (per_unit_ == 1 || !title.ends_with(kUnit)) return title;
    return title.substr(0, title.size() - kUnit.size()) + "(us)";
  }

  static std::string ticks_text(const std::vector<double>& ticks, bool bytes) {
    std::vector<std::string> out;
    for (const double tick : ticks)
      out.push_back(fmt::format("{} {:.10g}", gnuplot_text(tick_text(tick, bytes)), tick));
    return fmt::format("({})", fmt::join(out, ", "));
  }

  // Range, ticks and labels. The margins are only as wide as their content, to save space.
  std::string axes() const {
    const std::string title = title_of(curves_, request_);
    std::size_t longest = 1;
    for (const double tick : up_.ticks) longest = std::max(longest, tick_text(tick, false).size());
    const double letter = kGnuplotLetterWidth * request_.form.points;
    const double left = 2.1 * line() + static_cast<double>(longest) * letter;
    const double right = 0.5 * letter * static_cast<double>(1 + tick_text(across_.ticks.back(), is_bytes(x_)).size());
    const double top = (title.empty() ? 0.5 : 1.5) * line(), bottom = 2.5 * line() + legend_.height();
    if (height() - top - bottom < 4 * line()) {
      fail_usage(
          "--size {:g}x{:g}: no room for a plot beside a legend of {} entries; use a larger size, or fewer curves "
          "(--where)",
          request_.form.width_in, request_.form.height_in, legend_.entries());
    }
    const double letters = (width() - left - right) / letter;
    std::string out = fmt::format(
        "set lmargin at screen {:.4f}\nset rmargin at screen {:.4f}\nset tmargin at screen {:.4f}\nset bmargin at "
        "screen {:.4f}\n",
        left / width(), 1 - right / width(), 1 - top / height(), bottom / height());
    if (!title.empty()) out += fmt::format("set title {} offset 0,-0.6\n", gnuplot_text(title));
    out += fmt::format("set xlabel {} offset 0,1.1\nset ylabel {} offset 0.3,0\n",
                       gnuplot_text(request_.x_title.empty() ? axis_title(x_) : request_.x_title),
                       gnuplot_text(title_of_y()));
    out += "set grid lc rgb '#d0d0d0' lw 0.5\nset border lw 0.8\nset tics scale 0.5 nomirror\n";
    out += fmt::format("set xrange [{:.10g}:{:.10g}]\nset yrange [{:.10g}:{:.10g}]\n", across_.low, across_.high,
                       up_.low, up_.high);
    out += fmt::format("set xtics offset 0,0.5 {}\nset ytics {}\n",
                       ticks_text(ticks_with_room(across_, is_bytes(x_), letters), is_bytes(x_)),
                       ticks_text(up_.ticks, false));
    if (across_.logarithmic) out += "set logscale x 2\n";
    if (up_.logarithmic) out += "set logscale y 10\n";
    return out + "unset key\n" + legend_.text();
  }

  // Adds the bound if a part of it is inside the figure.
  void add_bound(std::size_t i) {
    const std::map<double, double> bounds = bounds_of(curves_[i]);
    const bool within = std::ranges::any_of(bounds, [this](const auto& bound) { return bound.second <= up_.high; });
    if (!request_.bounds || !within) return;
    data_ += gnuplot_data(fmt::format("bounds{}", i), bounds);
    elements_.push_back(fmt::format("$bounds{} using 1:2 with lines dt {} lw 1 lc rgb '{}' notitle", i,
                                    styles_[i].dashes, styles_[i].color));
    has_bounds_ = true;
  }

  // One row per x: the mean and its interval.
  std::vector<std::vector<double>> rows_of(const Curve& curve) const {
    std::vector<std::vector<double>> rows;
    for (const auto& [x, spot] : curve.spots) {
      const MeanInterval mean = mean_interval(spot.values);
      const double low = mean.low * per_unit_;
      rows.push_back({x, mean.mean * per_unit_, up_.logarithmic ? std::max(low, up_.low) : low, mean.high * per_unit_});
    }
    return rows;
  }

  void add_curve(std::size_t i) {
    const Curve& curve = curves_[i];
    data_ += gnuplot_data(fmt::format("points{}", i), rows_of(curve));
    const bool repeated = is_repeated(curve);
    elements_.push_back(fmt::format("$points{} using {} lc rgb '{}' lw {:.2f} pt {} ps {:.2f} notitle", i,
                                    repeated ? "1:2:3:4 with yerrorlines" : "1:2 with linespoints", styles_[i].color,
                                    scaled(1.5), styles_[i].mark, scaled(0.8)));
    legend_.add({fmt::format("lc rgb '{}' lw {:.2f}", styles_[i].color, scaled(1.5)),
                 fmt::format("pt {} ps {:.2f} lc rgb '{}'", styles_[i].mark, scaled(0.8), styles_[i].color),
                 curve.name});
  }

  void add_published(std::size_t kind) {
    if (!request_.published) return;
    for (std::size_t i = 0; i < curves_.size(); ++i) {
      std::map<double, double> points = published_of(curves_[i], kind);
      if (points.empty()) continue;
      for (auto& [x, y] : points) y *= per_unit_;
      data_ += gnuplot_data(fmt::format("published{}_{}", kind, i), points);
      elements_.push_back(
          fmt::format("$published{}_{} using 1:2 with points {} notitle", kind, i, published_style(kind)));
      has_published_.at(kind) = true;
    }
  }

  std::string published_style(std::size_t kind) const {
    return fmt::format("pt {} ps {:.2f} lw 0.9 lc rgb '#000000'", kPublishedKinds[kind].mark,
                       scaled(kPublishedKinds[kind].size));
  }

  // Numbers the knees and cliffs of the curves: one number per cause, and a single mark where curves meet.
  void add_causes() {
    constexpr double kSamePlace = 0.05;  // of the axes
    struct Mark {
      double x, y;
      std::set<std::size_t> causes;
    };
    std::vector<Mark> marks;
    for (const Curve& curve : curves_) {
      const std::vector<BendPoint> points = points_along(curve);
      for (const Bend& bend : bends_along(x_, points)) {
        const auto known = std::ranges::find(causes_, bend.cause);
        const auto cause = static_cast<std::size_t>(known - causes_.begin()) + 1;
        if (known == causes_.end()) causes_.push_back(bend.cause);
        const double x = points[bend.at].x, y = mean_interval(curve.spots.at(x).values).mean;
        auto mark = std::ranges::find_if(marks, [&](const Mark& each) {
          return each.x == x && std::abs(up_.position_of(each.y) - up_.position_of(y)) < kSamePlace;
        });
        if (mark == marks.end()) mark = marks.insert(marks.end(), Mark{x, y, {}});
        mark->causes.insert(cause);
      }
    }
    for (const Mark& mark : marks) {
      const char* side = mark.x == across_.ticks.back() ? "right offset -0.7,0.6" : "left offset 0.7,0.6";
      data_ += fmt::format("set label '{}' at first {:.10g},first {:.10g} {} font {} front\n",
                           fmt::join(mark.causes, ","), mark.x, mark.y, side, legend_.font());
    }
  }

  static std::vector<BendPoint> points_along(const Curve& curve) {
    std::vector<BendPoint> points;
    for (const auto& [x, spot] : curve.spots) {
      points.push_back(
          {x, number_at(spot.record->result, "rate_mops").value_or(0), spot.record, closed_form_limit(*spot.record)});
    }
    return points;
  }

  // Explains lines and marks that are not curves.
  void add_legend() {
    if (has_bounds_) legend_.add({"dt 2 lw 1 lc rgb '#000000'", "", "bound by PCIe and wire"});
    for (std::size_t kind = 0; kind < kPublishedKinds.size(); ++kind) {
      if (has_published_.at(kind)) legend_.add({"", published_style(kind), kPublishedKinds[kind].words});
    }
    for (std::size_t i = 0; i < causes_.size(); ++i) {
      legend_.add({"", "", fmt::format("{} {}{}", i + 1, i == 0 ? "bends: " : "", causes_[i])});
    }
  }

  // Marks grow with the font size.
  double scaled(double size) const { return size * request_.form.points / FigureForm().points; }

  const std::vector<Curve>& curves_;
  std::vector<CurveStyle> styles_;
  const PlotRequest& request_;
  const std::string &x_, &y_;
  Axis across_, up_;
  double per_unit_ = 1;  // drawn value / value
  std::string data_;
  std::vector<std::string> elements_, causes_;
  GnuplotLegend legend_;
  bool has_bounds_ = false;
  std::array<bool, kPublishedKinds.size()> has_published_{};
};

}  // namespace

std::string plot_script(const std::vector<Curve>& curves, const PlotRequest& request, const std::string& x,
                        const std::string& y) {
  return Script(curves, request, x, y).text();
}

}  // namespace verbscope
