// `verbscope export`: records in shapes that other tools read.
#include <memory>

#include "analysis/points.hpp"
#include "analysis/views.hpp"
#include "common/terminal.hpp"
#include "harness/commands/command.hpp"
#include "harness/commands/shared_options.hpp"

namespace verbscope {

Action add_export(CLI::App& command) {
  command.description("records in shapes that other tools read");
  struct Options {
    std::vector<std::string> results;
    std::string view = "jsonl";
    bool all = false;
  };
  auto options = std::make_shared<Options>();
  add_results(command, options->results);
  command.add_option("--view", options->view, "perftest, csv or jsonl (jsonl)")
      ->check(CLI::IsMember({"perftest", "csv", "jsonl"}));
  add_all(command, options->all);
  return [options] {
    const std::vector<Record> all = load_results(options->results, options->all);
    const std::vector<const Record*> records = chosen_records(all, options->all);
    const auto& view = options->view;
    print_format(stdout, "{}",
                 view == "perftest" ? perftest_lines(records)
                 : view == "csv"    ? flat_csv(records)
                                    : flat_lines(records));
    return 0;
  };
}

}  // namespace verbscope
