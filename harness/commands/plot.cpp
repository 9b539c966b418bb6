// `verbscope plot`: draws a figure of the records as SVG or PDF.
#include "analysis/plot.hpp"

#include <memory>

#include "analysis/keys.hpp"
#include "analysis/points.hpp"
#include "common/files.hpp"
#include "common/terminal.hpp"
#include "harness/commands/command.hpp"
#include "harness/commands/shared_options.hpp"

namespace verbscope {
namespace {

void add_form(CLI::App& command, PlotRequest& request, std::string& size, std::string& font) {
  command.add_option("--size", size,
                     "size in inches, as WIDTHxHEIGHT (default 6.5x4.2; a column of a paper is 3.3x2.5)");
  command.add_option("--font", font,
                     "font, as NAME,POINTS (default sans-serif,10; sans-serif,8 below 4.5 inches of width)");
  command.add_option("--title", request.title, "title above the figure");
  command.add_option("--x_title", request.x_title, "title of the horizontal axis (default: option and unit)");
  command.add_option("--y_title", request.y_title, "title of the vertical axis (default: result and unit)");
  command.add_flag_callback(
      "--log", [&request] { request.logarithmic = true; },
      "logarithmic horizontal axis (default if the values are geometric)");
  command
      .add_flag_callback(
          "--linear", [&request] { request.logarithmic = false; }, "linear horizontal axis")
      ->excludes("--log");
  command.add_flag("--log_y", request.logarithmic_y, "logarithmic vertical axis");
  command.add_flag("!--no_bounds", request.bounds, "omit the model's bounds");
  command.add_flag("!--no_published", request.published, "omit the figures of papers");
  command.add_flag("!--no_causes", request.causes, "omit the numbers at knees and cliffs");
}

}  // namespace

Action add_plot(CLI::App& command) {
  command.description("draw a figure of the records as SVG or PDF");
  command.footer("Example:\n  verbscope plot results/local/quickstart.jsonl -x post_list -o rates.svg");
  struct Options {
    std::vector<std::string> results, where;
    std::string out = "plot.svg", benchmark, size, font;
    PlotRequest request;
  };
  auto options = std::make_shared<Options>();
  PlotRequest& request = options->request;
  add_results(command, options->results);
  command.add_option("-x,--x", request.x, "the option on the horizontal axis: payload, threads, ...")->required();
  command.add_option("-y,--y", request.y, "the result on the vertical axis: mops, gbps, p50, p99, or any key")
      ->default_str("mops; p50 for latency benchmarks");
  command
      .add_option("-o,--out", options->out,
                  "write the figure to this .svg or .pdf file, and its .csv and .gp files beside it")
      ->default_str("plot.svg");
  add_where(command, options->where);
  command.add_option("--benchmark", options->benchmark, "short for --where benchmark=");
  add_form(command, request, options->size, options->font);
  return [options] {
    PlotRequest& asked = options->request;
    if (!options->size.empty()) set_size(asked.form, options->size);
    if (!options->font.empty()) set_font(asked.form, options->font);
    if (!options->benchmark.empty()) options->where.push_back("benchmark=" + options->benchmark);
    check_plot_files(options->out, paths_of(options->results));
    const std::vector<Record> all = load_results(options->results, false);
    std::vector<const Record*> records = last_of_each_point(all);
    keep_where(records, options->where);
    asked.out = options->out;
    draw_plot(records, asked);
    const PlotFiles files = plot_files(options->out);
    print_format(stdout, "{}\n{}\n{}\n", files.figure.string(), files.data.string(), files.script.string());
    return 0;
  };
}

}  // namespace verbscope
