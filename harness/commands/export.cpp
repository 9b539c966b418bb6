// `verbscope export`: converts records to formats of other tools.
#include <memory>

#include "analysis/keys.hpp"
#include "analysis/perftest.hpp"
#include "analysis/points.hpp"
#include "analysis/results_files.hpp"
#include "common/files.hpp"
#include "common/option_values.hpp"
#include "common/terminal.hpp"
#include "harness/commands/command.hpp"
#include "harness/commands/shared_options.hpp"

namespace verbscope {

Action add_export(CLI::App& command) {
  command.description("convert records to formats that other tools read");
  command.footer("Example:\n  verbscope export results/local/quickstart.jsonl --view csv");
  struct Options {
    std::vector<std::string> results, where;
    std::string view = "jsonl", out;
    bool all = false;
  };
  auto options = std::make_shared<Options>();
  add_results(command, options->results);
  command
      .add_option("--view", options->view,
                  "format: perftest (its --out_json documents), perftest_table (its tables), csv (one table) or jsonl "
                  "(records without nesting)")
      ->transform(one_of({"perftest", "perftest_table", "csv", "jsonl"}))
      ->default_str("jsonl");
  command.add_option("-o,--out", options->out, "write to this file (default: standard output)");
  add_where(command, options->where);
  add_all(command, options->all);
  return [options, &command] {
    const bool to_file = command.count("--out") > 0;
    if (to_file) check_output("--out", options->out, FileKind::exported, paths_of(options->results));
    const std::vector<Record> all = load_results(options->results, options->all);
    std::vector<const Record*> records = chosen_records(all, options->all);
    keep_where(records, options->where);
    const auto& view = options->view;
    const std::string text = view == "perftest"         ? perftest_lines(records, PerftestForm::json)
                             : view == "perftest_table" ? perftest_lines(records, PerftestForm::table)
                             : view == "csv"            ? flat_csv(records)
                                                        : flat_lines(records);
    if (to_file) {
      replace_file(options->out, text);
    } else {
      print_text(stdout, text);
    }
    return 0;
  };
}

}  // namespace verbscope
