// `verbscope compare`: records beside the model and the published figures.
#include "analysis/compare.hpp"

#include <memory>

#include "analysis/points.hpp"
#include "analysis/where.hpp"
#include "common/terminal.hpp"
#include "harness/commands/command.hpp"
#include "harness/commands/shared_options.hpp"

namespace verbscope {

Action add_compare(CLI::App& command) {
  command.description("records beside the model and the published figures");
  command.footer("Example:\n  verbscope compare results/local/quickstart.jsonl");
  struct Options {
    std::vector<std::string> results, where;
    std::string format = "text";
    bool all = false;
  };
  auto options = std::make_shared<Options>();
  add_results(command, options->results);
  add_where(command, options->where);
  add_format(command, options->format, {"text", "json", "csv"});
  add_all(command, options->all);
  return [options] {
    const std::vector<Record> records = load_results(options->results, options->all);
    const std::vector<PublishedPoint> published = load_published();
    std::vector<const Record*> chosen = chosen_records(records, options->all);
    keep_where(chosen, options->where);
    const std::vector<CompareRow> rows = compare_records(chosen, published);
    if (options->format == "json") {
      print_format(stdout, "{}\n", pretty_json(compare_json(rows)));
    } else {
      print_format(stdout, "{}",
                   options->format == "csv" ? compare_csv(rows) : compare_table(rows, terminal_width(stdout)));
    }
    return 0;
  };
}

}  // namespace verbscope
