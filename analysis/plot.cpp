#include "analysis/plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <tuple>
#include <utility>

#include "analysis/keys.hpp"
#include "analysis/loads.hpp"
#include "analysis/points.hpp"
#include "analysis/statistics.hpp"
#include "analysis/text_table.hpp"
#include "common/record.hpp"

namespace verbscope {
namespace {

constexpr const char* kRateKey = "rate_mops";

// Options are compared only within a family: the records of one file, benchmark, fabric and label.
using Family = std::tuple<std::string, std::string, std::string, std::string>;

Family family_of(const Record& record, const FabricNames& fabrics) {
  return {record.file, record.benchmark, fabrics.name_of(record), label_of(record)};
}

// The options other than x that differ within each family, in the order of the records.
std::map<Family, std::vector<std::string>> differing_options(const std::vector<const Record*>& records,
                                                             const std::string& x, const FabricNames& fabrics) {
  struct Option {
    std::string key;
    std::set<std::string> values;
  };
  std::map<Family, std::vector<Option>> seen;
  for (const Record* record : records) {
    std::vector<Option>& options = seen[family_of(*record, fabrics)];
    for (const std::string& key : option_keys(*record)) {
      const bool is_x = key == x || key + "_s" == x;
      if (!is_x && std::ranges::find(options, key, &Option::key) == options.end()) options.push_back({key, {}});
    }
  }
  for (const Record* record : records) {
    for (Option& option : seen[family_of(*record, fabrics)]) option.values.insert(option_text(*record, option.key));
  }
  std::map<Family, std::vector<std::string>> differing;
  for (const auto& [family, options] : seen) {
    for (const Option& option : options) {
      if (option.values.size() > 1) differing[family].push_back(option.key);
    }
  }
  return differing;
}

std::string rest_of(const Record& record, const std::vector<std::string>& differing) {
  std::string rest = label_of(record);
  for (const std::string& key : differing) {
    const std::string value = option_text(record, key);
    if (value != "-") rest += fmt::format("{}{}={}", rest.empty() ? "" : " ", key, value);
  }
  return rest;
}

// Gives each curve its shortest distinct name: with file, benchmark and fabric only if they distinguish curves.
void name_curves(std::vector<Curve>& curves) {
  std::set<std::string> fabrics, benchmarks;
  std::set<std::array<std::string, 3>> without_benchmark, without_file;
  bool unique_without_benchmark = true, unique_without_file = true;
  for (const Curve& curve : curves) {
    fabrics.insert(curve.fabric);
    benchmarks.insert(curve.benchmark);
    unique_without_benchmark &=
        !curve.rest.empty() && without_benchmark.insert({curve.file, curve.fabric, curve.rest}).second;
    unique_without_file &= without_file.insert({curve.benchmark, curve.fabric, curve.rest}).second;
  }
  for (Curve& curve : curves) {
    const auto add = [&curve](const std::string& text) { curve.name += (curve.name.empty() ? "" : " ") + text; };
    if (!unique_without_file) add(curve.file);
    if (benchmarks.size() > 1 && !unique_without_benchmark) add(curve.benchmark);
    if (fabrics.size() > 1) add(curve.fabric);
    if (!curve.rest.empty()) add(curve.rest);
    if (curve.name.empty()) curve.name = curve.benchmark;
  }
}

// One line per point of each curve. The first line begins with kFigureDataHead.
std::string data_text(const std::vector<Curve>& curves, const std::string& x, const std::string& y) {
  std::string out = csv_line({"curve", "benchmark", "fabric", "simulated", x, y, "low", "high", "repetitions",
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

std::vector<Curve> curves_of(const std::vector<const Record*>& records, const std::string& x, const std::string& y,
                             const std::vector<PublishedPoint>& published) {
  std::vector<const Record*> drawn = records;
  std::erase_if(drawn, [&](const Record* record) {
    return record->status == RecordStatus::failed || !number_at(record->config, x) || !result_number(*record, y);
  });
  const FabricNames fabrics(drawn);
  const auto differing = differing_options(drawn, x, fabrics);
  std::vector<Curve> curves;
  for (const Record* record : drawn) {
    const auto keys = differing.find(family_of(*record, fabrics));
    Curve own{.file = record->file,
              .benchmark = record->benchmark,
              .fabric = fabrics.name_of(*record),
              .rest = rest_of(*record, keys == differing.end() ? std::vector<std::string>{} : keys->second),
              .name = "",
              .simulated = is_simulated(text_at(record->environment, "fabric")),
              .spots = {}};
    const auto identity = [](const Curve& curve) {
      return std::tie(curve.file, curve.benchmark, curve.fabric, curve.rest);
    };
    auto curve = std::ranges::find(curves, identity(own), identity);
    if (curve == curves.end()) curve = curves.insert(curves.end(), std::move(own));
    CurveSpot& spot = curve->spots[*number_at(record->config, x)];
    spot.values.push_back(*result_number(*record, y));
    if (spot.record == nullptr) spot.record = record;
    const auto prediction = y == kRateKey ? prediction_of(*record) : std::nullopt;
    if (prediction) spot.bound_mops = prediction->bound_mops;
    const PublishedPoint* row = find_published(published, *record);
    if (row != nullptr && row->run.result_key == y) spot.published = row;
  }
  name_curves(curves);
  return curves;
}

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
  const std::string y = request.y.empty() ? main_result_key(records) : find_result_key("--y", request.y, records);
  const std::vector<PublishedPoint> published = load_published();
  const std::vector<Curve> curves = curves_of(records, x, y, published);
  if (curves.empty()) fail_usage("no point has numbers for both {} (--x) and {} (--y)", x, y);
  const std::string script = plot_script(curves, request, x, y);
  draw_with_gnuplot(request.out, script, request.form);
  replace_file(files.data, data_text(curves, x, y));
  replace_file(files.script,
               fmt::format("{}: gnuplot {}\n{}set output {}\n{}", kGnuplotScriptHead,
                           on_one_line(files.script.filename().string()), gnuplot_terminal(request.out, request.form),
                           gnuplot_file_name(files.figure.filename().string()), script));
}

}  // namespace verbscope
