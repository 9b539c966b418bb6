// `verbscope export`: records in shapes that other tools read.
#include <memory>

#include "analysis/points.hpp"
#include "analysis/views.hpp"
#include "analysis/where.hpp"
#include "common/option_values.hpp"
#include "common/terminal.hpp"
#include "harness/commands/command.hpp"
#include "harness/commands/shared_options.hpp"

namespace verbscope {

Action add_export(CLI::App& command) {
  command.description("records in shapes that other tools read");
  command.footer("Example:\n  verbscope export results/local/quickstart.jsonl --view csv");
  struct Options {
    std::vector<std::string> results, where;
    std::string view = "jsonl";
    bool all = false;
  };
  auto options = std::make_shared<Options>();
  add_results(command, options->results);
  command.add_option("--view", options->view, "lines as perftest prints them, a table, or records without nesting")
      ->transform(one_of({"perftest", "csv", "jsonl"}))
      ->default_str("jsonl");
  add_where(command, options->where);
  add_all(command, options->all);
  return [options] {
    const std::vector<Record> all = load_results(options->results, options->all);
    std::vector<const Record*> records = chosen_records(all, options->all);
    keep_where(records, options->where);
    const auto& view = options->view;
    print_format(stdout, "{}",
                 view == "perftest" ? perftest_lines(records)
                 : view == "csv"    ? flat_csv(records)
                                    : flat_lines(records));
    return 0;
  };
}

}  // namespace verbscope
