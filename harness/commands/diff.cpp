// `verbscope diff`: finds points of one results file that are slower or faster than in another.
#include "analysis/diff.hpp"

#include <algorithm>
#include <memory>
#include <sstream>

#include "analysis/keys.hpp"
#include "analysis/results_files.hpp"
#include "common/cli.hpp"
#include "common/option_values.hpp"
#include "common/terminal.hpp"
#include "harness/commands/command.hpp"
#include "harness/commands/shared_options.hpp"

namespace verbscope {

namespace {

Diff diff_of(const std::string& base, const std::string& other, const std::string& across, const std::string& metric,
             DiffRequest request) {
  if (across.empty() && other.empty()) fail_usage("new is required: a second results file, or --across KEY");
  if (!across.empty() && !other.empty())
    fail_usage("--across {}: it compares points of one file, but two are given", across);
  const std::vector<Record> before = load_results({base}, false);
  const std::vector<Record> after = other.empty() ? std::vector<Record>{} : load_results({other}, false);
  std::vector<const Record*> all;
  for (const auto* side : {&before, &after}) {
    for (const Record& record : *side) all.push_back(&record);
  }
  request.metric = metric.empty() ? main_result_key(all) : find_result_key("--metric", metric, all);
  for (std::string& key : request.ignored) std::ranges::replace(key, '-', '_');
  return across.empty() ? diff_records(before, after, request) : diff_across(before, across, request);
}

}  // namespace

Action add_diff(CLI::App& command) {
  command.description("compare two results files point by point: slower, faster or equivalent");
  struct Options {
    std::string base, other, format = "text", metric, across;
    bool strict = false;
    DiffRequest request;
  };
  auto options = std::make_shared<Options>();
  command.add_option("base", options->base, "results file of the baseline")->required();
  command.add_option("new", options->other, "results file to compare with the baseline; leave out with --across");
  command.add_option("--metric", options->metric,
                     "compare this result: p99, gbps, dma_read_lines_per_op, or any other key (default: the rate, or "
                     "the median latency if all points measure one)");
  command
      .add_option("--ignore", options->request.ignored,
                  "ignore this option, or fabric, when points are matched; may be repeated")
      ->allow_extra_args(false)
      ->type_name("KEY");
  command
      .add_option("--across", options->across,
                  "compare points of one file that differ in this option; KEY=A,B compares value A with B")
      ->type_name("KEY");
  command.add_option("--threshold", options->request.threshold_percent, "smallest change that counts, in percent")
      ->default_str(fmt::format("{:g}", options->request.threshold_percent))
      ->transform(number_between(0, 99));
  command.add_option("--confidence", options->request.confidence, "confidence of all verdicts together")
      ->default_str("0.95")
      ->transform(number_between(0.5, 0.9999));
  command.add_flag("--strict", options->strict, "exit with 1 unless every point is equivalent or faster");
  add_format(command, options->format, {"text", "json", "csv"});
  command.footer(
      "Examples:\n  verbscope diff base.jsonl new.jsonl --threshold 5\n"
      "  verbscope diff base.jsonl new.jsonl --metric p99 --ignore tx_depth\n"
      "  verbscope diff sweep.jsonl --across connection=RC,UC\n"
      "Exit status: 1 if a point is slower or failed, or if no points match (stderr has the reason); else 0.");
  return [options] {
    const Diff diff = diff_of(options->base, options->other, options->across, options->metric, options->request);
    if (options->format == "json") {
      print_format(stdout, "{}\n", pretty_json(diff_json(diff)));
    } else if (options->format == "csv") {
      std::istringstream warnings(environment_text(diff.environment));
      for (std::string line; std::getline(warnings, line);) print_error(line);
      print_format(stdout, "{}", diff_csv(diff));
    } else {
      print_format(stdout, "{}", diff_text(diff, terminal_width(stdout)));
    }
    const std::string failure = gate_failure(diff, options->strict);
    if (failure.empty()) return 0;
    print_error("diff: " + failure);
    return 1;
  };
}

}  // namespace verbscope
