// The commands that write records out for people and for other tools: report, plot, export.
#include <fstream>
#include <memory>

#include "analysis/commands.hpp"
#include "analysis/plot.hpp"
#include "analysis/points.hpp"
#include "analysis/report.hpp"
#include "analysis/views.hpp"

namespace verbscope {
namespace {

void write_text(const std::string& path, const std::string& text) {
  errno = 0;
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text << std::flush;
  if (!file) throw_errno(fmt::format("cannot write {}", path), errno);
}

}  // namespace

std::function<int()> add_report_command(CLI::App& command) {
  struct Options {
    std::vector<std::string> results;
    std::string out = "report.html";
    bool all = false;
  };
  auto options = std::make_shared<Options>();
  command.add_option("results", options->results, "results files")->required();
  command.add_option("-o,--out", options->out, "the page (report.html)");
  command.add_flag("--all", options->all, "every record, not the last of each point only");
  return [options] {
    const std::vector<Record> records = load_results(options->results, options->all);
    write_text(options->out, report_page(chosen_records(records, options->all)));
    fmt::print("{}\n", options->out);
    return 0;
  };
}

std::function<int()> add_plot_command(CLI::App& command) {
  struct Options {
    std::vector<std::string> results;
    std::string out = "plot.svg", benchmark;
    PlotRequest request;
  };
  auto options = std::make_shared<Options>();
  command.add_option("results", options->results, "results files")->required();
  command.add_option("-x,--x", options->request.x, "the option on the horizontal axis")->required();
  command.add_option("-y,--y", options->request.y, "the key of the result on the vertical axis (rate_mops)");
  command.add_option("-o,--out", options->out, "the figure, .svg or .pdf (plot.svg)");
  command.add_option("--benchmark", options->benchmark, "only records of this benchmark");
  command.add_flag("--log", options->request.logarithmic, "logarithmic horizontal axis");
  return [options] {
    const std::vector<Record> all = load_results(options->results, false);
    std::vector<const Record*> records = last_of_each_point(all);
    std::erase_if(records, [&](const Record* record) {
      return !options->benchmark.empty() && record->benchmark != options->benchmark;
    });
    options->request.out = options->out;
    draw_plot(records, options->request);
    fmt::print("{}\n", options->out);
    return 0;
  };
}

std::function<int()> add_export_command(CLI::App& command) {
  struct Options {
    std::vector<std::string> results;
    std::string view = "jsonl";
    bool all = false;
  };
  auto options = std::make_shared<Options>();
  command.add_option("results", options->results, "results files")->required();
  command.add_option("--view", options->view, "perftest, csv or jsonl (jsonl)")
      ->check(CLI::IsMember({"perftest", "csv", "jsonl"}));
  command.add_flag("--all", options->all, "every record, not the last of each point only");
  return [options] {
    const std::vector<Record> all = load_results(options->results, options->all);
    const std::vector<const Record*> records = chosen_records(all, options->all);
    const auto& view = options->view;
    fmt::print("{}", view == "perftest" ? perftest_lines(records)
                     : view == "csv"    ? flat_csv(records)
                                        : flat_lines(records));
    return 0;
  };
}

}  // namespace verbscope
