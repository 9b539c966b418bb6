// `verbscope diff`: whether the points of one results file are slower or faster than those of another.
#include "analysis/diff.hpp"

#include <memory>

#include "analysis/points.hpp"
#include "common/cli.hpp"
#include "common/terminal.hpp"
#include "harness/commands/command.hpp"
#include "harness/commands/shared_options.hpp"

namespace verbscope {
namespace {

// CLI::Range takes "nan" for a number of any range: it is neither below nor above.
CLI::Validator number_between(double low, double high) {
  const auto refusal = [low, high](const std::string& text) {
    double value = 0;
    const bool is_inside = CLI::detail::lexical_cast(text, value) && value >= low && value <= high;
    return is_inside ? "" : fmt::format("expected a number from {:g} to {:g}, got \"{}\"", low, high, text);
  };
  return {refusal, fmt::format("{:g} to {:g}", low, high)};
}

}  // namespace

Action add_diff(CLI::App& command) {
  command.description("whether the points of one results file are slower or faster than those of another");
  struct Options {
    std::string base, other, format = "text";
    std::optional<double> threshold;
    double confidence = 0.95;
  };
  auto options = std::make_shared<Options>();
  command.add_option("base", options->base, "the results to compare with")->required();
  command.add_option("new", options->other, "the results that are compared")->required();
  command
      .add_option("--threshold", options->threshold, "exit with 1 when a point is slower by more than so many percent")
      ->check(number_between(0, 100));
  command.add_option("--confidence", options->confidence, "of the intervals (0.95)")
      ->check(number_between(0.5, 0.9999));
  add_format(command, options->format, {"text", "json", "csv"});
  return [options] {
    const std::vector<Record> base = load_results({options->base}, false),
                              other = load_results({options->other}, false);
    const std::vector<DiffRow> rows = diff_records(base, other, options->confidence);
    if (options->format == "json") {
      print_format(stdout, "{}\n", pretty_json(diff_json(rows)));
    } else {
      print_format(stdout, "{}", options->format == "csv" ? diff_csv(rows) : diff_text(rows, options->confidence));
    }
    return options->threshold && !within_threshold(rows, *options->threshold) ? 1 : 0;
  };
}

}  // namespace verbscope
