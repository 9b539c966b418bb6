#include "analysis/plot.hpp"

#include <fmt/format.h>

#include "analysis/csv.hpp"
#include "analysis/curves.hpp"
#include "analysis/keys.hpp"
#include "analysis/mean_interval.hpp"
#include "analysis/plot_script.hpp"

namespace verbscope {
namespace {

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
