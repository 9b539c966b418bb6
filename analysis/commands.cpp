#include "analysis/commands.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <memory>

#include "analysis/compare.hpp"
#include "analysis/diff.hpp"
#include "analysis/explain.hpp"
#include "analysis/points.hpp"

namespace verbscope {
namespace {

// The records whose id begins with `id`; throws a UsageError when there are none.
std::vector<const Record*> with_id(std::vector<const Record*> records, const std::string& id) {
  if (id.empty()) return records;
  std::erase_if(records, [&id](const Record* record) { return !point_id(*record).starts_with(id); });
  if (records.empty()) fail_usage("--point: no point has the id {}; `verbscope explain` prints them", dump_json(id));
  return records;
}

void add_format(CLI::App& command, std::string& format, const std::vector<std::string>& formats) {
  command.add_option("--format", format, fmt::format("{} (text)", fmt::join(formats, ", ")))
      ->check(CLI::IsMember(formats));
  command.add_flag_callback(
      "--json", [&format] { format = "json"; }, "the same as --format json");
}

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

std::function<int()> add_compare_command(CLI::App& command) {
  struct Options {
    std::vector<std::string> results;
    std::string format = "text";
    bool all = false;
  };
  auto options = std::make_shared<Options>();
  command.add_option("results", options->results, "results files")->required();
  add_format(command, options->format, {"text", "json", "csv"});
  command.add_flag("--all", options->all, "every record, not the last of each point only");
  return [options] {
    const std::vector<Record> records = load_results(options->results, options->all);
    const std::vector<PublishedPoint> published = load_published();
    const std::vector<CompareRow> rows = compare_records(chosen_records(records, options->all), published);
    if (options->format == "json") {
      fmt::print("{}\n", compare_json(rows).dump(2));
    } else {
      fmt::print("{}", options->format == "csv" ? compare_csv(rows) : compare_table(rows));
    }
    return 0;
  };
}

std::function<int()> add_explain_command(CLI::App& command) {
  struct Options {
    std::vector<std::string> results;
    std::string point, format = "text";
    bool all = false;
  };
  auto options = std::make_shared<Options>();
  command.add_option("results", options->results, "results files")->required();
  command.add_option("--point", options->point, "only the point with this id, or whose id begins so");
  add_format(command, options->format, {"text", "json"});
  command.add_flag("--all", options->all, "every record, not the last of each point only");
  return [options] {
    const std::vector<Record> records = load_results(options->results, options->all);
    Json json = Json::array();
    for (const Record* record : with_id(chosen_records(records, options->all), options->point)) {
      if (options->format == "json") {
        json.push_back(explain_json(*record));
      } else {
        fmt::print("{}\n", explain_text(*record));
      }
    }
    if (options->format == "json") fmt::print("{}\n", json.dump(2));
    return 0;
  };
}

std::function<int()> add_diff_command(CLI::App& command) {
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
      fmt::print("{}\n", diff_json(rows).dump(2));
    } else {
      fmt::print("{}", options->format == "csv" ? diff_csv(rows) : diff_text(rows, options->confidence));
    }
    return options->threshold && !within_threshold(rows, *options->threshold) ? 1 : 0;
  };
}

}  // namespace verbscope
