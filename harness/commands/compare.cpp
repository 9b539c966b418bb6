// `verbscope compare`: compares records with the model and the published figures.
#include "analysis/compare.hpp"

#include <memory>

#include "analysis/keys.hpp"
#include "analysis/results_files.hpp"
#include "common/terminal.hpp"
#include "harness/commands/command.hpp"
#include "harness/commands/shared_options.hpp"

namespace verbscope {

Action add_compare(CLI::App& command) {
  command.description("print records beside the model and the published figures");
  command.footer(
      "Examples:\n  verbscope compare results/local/quickstart.jsonl\n"
      "  verbscope compare base.jsonl new.jsonl --columns gbps,limit,id\n"
      "Several files are not merged: each has its own rows.");
  struct Options {
    std::vector<std::string> results, where, columns;
    std::string format = "text";
    bool all = false;
  };
  auto options = std::make_shared<Options>();
  add_results(command, options->results);
  add_where(command, options->where);
  add_format(command, options->format, {"text", "json", "csv"});
  command
      .add_option("--columns", options->columns,
                  "add these columns: gbps, limit (by closed form), id, or any key of the results")
      ->delimiter(',')
      ->type_name("NAME,...");
  add_all(command, options->all);
  return [options] {
    const std::vector<Record> records = load_results(options->results, options->all);
    std::vector<const Record*> chosen = chosen_records(records, options->all);
    keep_where(chosen, options->where);
    const std::vector<PublishedPoint> published = load_published();
    const std::vector<CompareRow> rows = compare_records(chosen, published);
    const CompareView view{.every_record = options->all,
                           .columns = parse_columns(options->columns, rows),
                           .width = terminal_width(stdout)};
    if (options->format == "json") {
      print_format(stdout, "{}\n", pretty_json(compare_json(rows, view)));
    } else {
      print_format(stdout, "{}", options->format == "csv" ? compare_csv(rows, view) : compare_table(rows, view));
    }
    return 0;
  };
}

}  // namespace verbscope
