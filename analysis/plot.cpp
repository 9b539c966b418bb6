#include "analysis/plot.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "analysis/gnuplot.hpp"
#include "analysis/loads.hpp"
#include "analysis/mean_interval.hpp"
#include "analysis/points.hpp"
#include "common/environment.hpp"

namespace verbscope {
namespace {

struct Curve {
  std::string name;
  std::map<double, std::vector<double>> points;  // the values of all repetitions
  std::map<double, double> bounds;
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
    curve->points[*x].push_back(*y);
    const auto prediction = request.y == "rate_mops" ? prediction_of(*record) : std::nullopt;
    if (prediction) curve->bounds[*x] = prediction->bound_mops;
  }
  return curves;
}

// A line for each x: the mean, and the interval that it is in.
std::vector<std::vector<double>> rows_of(const Curve& curve) {
  std::vector<std::vector<double>> rows;
  for (const auto& [x, values] : curve.points) {
    const MeanInterval mean = mean_interval(values);
    rows.push_back({x, mean.mean, mean.low, mean.high});
  }
  return rows;
}

bool is_repeated(const Curve& curve) {
  return std::ranges::any_of(curve.points, [](const auto& point) { return point.second.size() > 1; });
}

// The input for gnuplot.
std::string plot_script(const std::vector<const Record*>& records, const PlotRequest& request) {
  const std::string x = config_key(records, request.x);
  const std::vector<Curve> curves = curves_of(records, x, request);
  if (curves.empty()) fail("no record has numbers for both {} (an option) and {} (a result)", request.x, request.y);
  std::string script = fmt::format("set xlabel {}\nset ylabel {}\nset yrange [0:*]\nset grid\nset key outside below\n",
                                   gnuplot_text(x), gnuplot_text(request.y == "rate_mops" ? "Mops" : request.y));
  if (request.logarithmic) script += "set logscale x 2\n";
  std::string plots;
  for (std::size_t i = 0; i < curves.size(); ++i) {
    const char* color = gnuplot_color(i);
    script += gnuplot_data(fmt::format("points{}", i), rows_of(curves[i]));
    plots += fmt::format("{}$points{} using {} lc rgb '{}' pt {} title {}", i > 0 ? ", " : "plot ", i,
                         is_repeated(curves[i]) ? "1:2:3:4 with yerrorlines" : "1:2 with linespoints", color,
                         i % 15 + 4, gnuplot_text(curves[i].name));
    if (curves[i].bounds.empty()) continue;
    script += gnuplot_data(fmt::format("bounds{}", i), curves[i].bounds);
    plots += fmt::format(", $bounds{} using 1:2 with lines dt 2 lc rgb '{}' title {}", i, color,
                         i == 0 ? "'model bounds'" : "''");
  }
  return script + plots + "\n";
}

}  // namespace

void draw_plot(const std::vector<const Record*>& records, const PlotRequest& request) {
  draw_with_gnuplot(request.out, plot_script(records, request));
}

}  // namespace verbscope
