// `verbscope diff`: finds points of one results file that are slower or faster than in another.
#include "analysis/diff.hpp"

#include <algorithm>
#include <memory>
#include <sstream>

#include "analysis/keys.hpp"
#include "analysis/points.hpp"
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
    fail_usage("--across {}: it compares the points of one file, not of two", across);
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
  command.description("whether the points of one results file are slower or faster than those of another");
  struct Options {
    std::string base, other, format = "text", metric, across;
    bool strict = false;
    DiffRequest request;
  };
  auto options = std::make_shared<Options>();
  command.add_option("base", options->base, "the results to compare with")->required();
  command.add_option("new", options->other, "the results that are compared; none with --across");
  command.add_option("--metric", options->metric,
                     "Compare this result: p99, gbps, dma_read_lines_per_op, or any other key (default: rate, or the "
                     "median of latency where all points measure one)");
  command
      .add_option("--ignore", options->request.ignored,
                  "Match points without this option, or without fabric; may be repeated")
      ->allow_extra_args(false)
      ->type_name("KEY");
  command
      .add_option("--across", options->across,
                  "Compare the points with one value of this option with those with another, in one file; KEY=A,B "
                  "compares A with B")
      ->type_name("KEY");
  command
      .add_option("--threshold", options->request.threshold_percent,
                  "a change of less than so many percent does not count")
      ->default_str(fmt::format("{:g}", options->request.threshold_percent))
      ->transform(number_between(0, 99));
  command.add_option("--confidence", options->request.confidence, "of all verdicts together")
      ->default_str("0.95")
      ->transform(number_between(0.5, 0.9999));
  command.add_flag("--strict", options->strict, "exit with 1 unless every point is equivalent or faster");
  add_format(command, options->format, {"text", "json", "csv"});
  command.footer(
      "Examples:\n  verbscope diff base.jsonl new.jsonl --threshold 5\n"
      "  verbscope diff base.jsonl new.jsonl --metric p99 --ignore tx_depth\n"
      "  verbscope diff sweep.jsonl --across connection=RC,UC\n"
      "It exits with 1 when a point is slower or failed, or no point has a partner, and says so on stderr; else with "
      "0.");
  return [options] {
    const Diff diff = diff_of(options->base, options->other, options->across, options->metric, options->request);
    if (options->format == "json") {
      print_format(stdout, "{}\n", pretty_json(diff_json(diff)));
    } else if (options->format == "csv") {
      std::istringstream told(environment_text(diff.environment));
      for (std::string line; std::getline(told, line);) tell_error(line);
      print_format(stdout, "{}", diff_csv(diff));
    } else {
      print_format(stdout, "{}", diff_text(diff, terminal_width(stdout)));
    }
    const std::string failure = gate_failure(diff, options->strict);
    if (failure.empty()) return 0;
    tell_error("diff: " + failure);
    return 1;
  };
}

}  // namespace verbscope
