// `verbscope report`: writes records as an interactive HTML page that works offline.
#include "analysis/report.hpp"

#include <memory>

#include "analysis/keys.hpp"
#include "analysis/points.hpp"
#include "common/files.hpp"
#include "common/terminal.hpp"
#include "harness/commands/command.hpp"
#include "harness/commands/shared_options.hpp"

namespace verbscope {
Action add_report(CLI::App& command) {
  command.description("write records as one interactive page that opens offline");
  command.footer("Example:\n  verbscope report results/local/quickstart.jsonl -o report.html");
  struct Options {
    std::vector<std::string> results, where;
    std::string out = "report.html";
    bool all = false;
  };
  auto options = std::make_shared<Options>();
  add_results(command, options->results);
  command.add_option("-o,--out", options->out, "write the page to this file")->default_str("report.html");
  add_where(command, options->where);
  add_all(command, options->all);
  return [options] {
    check_output("--out", options->out, FileKind::report_page, paths_of(options->results));
    const std::vector<Record> records = load_results(options->results, options->all);
    std::vector<const Record*> chosen = chosen_records(records, options->all);
    keep_where(chosen, options->where);
    replace_file(options->out, report_page(chosen));
    print_format(stdout, "{}\n", options->out);
    return 0;
  };
}

}  // namespace verbscope
