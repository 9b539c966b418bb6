// `verbscope diff`: whether the points of one results file are slower or faster than those of another.
#include "analysis/diff.hpp"

#include <memory>
#include <sstream>

#include "analysis/points.hpp"
#include "common/cli.hpp"
#include "common/option_values.hpp"
#include "common/terminal.hpp"
#include "harness/commands/command.hpp"
#include "harness/commands/shared_options.hpp"

namespace verbscope {

Action add_diff(CLI::App& command) {
  command.description("whether the points of one results file are slower or faster than those of another");
  struct Options {
    std::string base, other, format = "text";
    bool strict = false;
    DiffRequest request;
  };
  auto options = std::make_shared<Options>();
  command.add_option("base", options->base, "the results to compare with")->required();
  command.add_option("new", options->other, "the results that are compared")->required();
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
      "Example:\n  verbscope diff base.jsonl new.jsonl --threshold 5\nIt exits with 1 when a point is slower or "
      "failed, else with 0.");
  return [options] {
    const std::vector<Record> base = load_results({options->base}, false),
                              other = load_results({options->other}, false);
    const Diff diff = diff_records(base, other, options->request);
    if (options->format == "json") {
      print_format(stdout, "{}\n", pretty_json(diff_json(diff)));
    } else if (options->format == "csv") {
      std::istringstream told(environment_text(diff.environment));
      for (std::string line; std::getline(told, line);) tell_error(line);
      print_format(stdout, "{}", diff_csv(diff));
    } else {
      print_format(stdout, "{}", diff_text(diff, terminal_width(stdout)));
    }
    return passes(diff, options->strict) ? 0 : 1;
  };
}

}  // namespace verbscope
