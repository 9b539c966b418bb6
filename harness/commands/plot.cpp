// `verbscope plot`: a figure of the records as SVG or PDF.
#include "analysis/plot.hpp"

#include <memory>

#include "analysis/gnuplot.hpp"
#include "analysis/points.hpp"
#include "common/output_file.hpp"
#include "common/terminal.hpp"
#include "harness/commands/command.hpp"
#include "harness/commands/shared_options.hpp"

namespace verbscope {

Action add_plot(CLI::App& command) {
  command.description("a figure of the records as SVG or PDF");
  command.footer("Example:\n  verbscope plot results/local/quickstart.jsonl -x post_list -o rates.svg");
  struct Options {
    std::vector<std::string> results;
    std::string out = "plot.svg", benchmark;
    PlotRequest request;
  };
  auto options = std::make_shared<Options>();
  add_results(command, options->results);
  command.add_option("-x,--x", options->request.x, "the option on the horizontal axis")->required();
  command.add_option("-y,--y", options->request.y, "the key of the result on the vertical axis")
      ->default_str("rate_mops");
  command.add_option("-o,--out", options->out, "the figure, .svg or .pdf")->default_str("plot.svg");
  command.add_option("--benchmark", options->benchmark, "only records of this benchmark");
  command.add_flag("--log", options->request.logarithmic, "logarithmic horizontal axis");
  return [options] {
    check_output("--out", options->out, figure_kind(options->out), paths_of(options->results));
    const std::vector<Record> all = load_results(options->results, false);
    std::vector<const Record*> records = last_of_each_point(all);
    std::erase_if(records, [&](const Record* record) {
      return !options->benchmark.empty() && record->benchmark != options->benchmark;
    });
    options->request.out = options->out;
    draw_plot(records, options->request);
    print_format(stdout, "{}\n", options->out);
    return 0;
  };
}

}  // namespace verbscope
