// `verbscope explain`: why each point has the rate that it has, and what would lift it.
#include "analysis/explain.hpp"

#include <memory>

#include "analysis/points.hpp"
#include "common/cli.hpp"
#include "common/terminal.hpp"
#include "harness/commands/command.hpp"
#include "harness/commands/shared_options.hpp"

namespace verbscope {
namespace {

// The records whose id begins with `id`; throws a UsageError when there are none.
std::vector<const Record*> with_id(std::vector<const Record*> records, const std::string& id) {
  if (id.empty()) return records;
  std::erase_if(records, [&id](const Record* record) { return !point_id(*record).starts_with(id); });
  if (records.empty()) fail_usage("--point: no point has the id {}; `verbscope explain` prints them", dump_json(id));
  return records;
}

}  // namespace

Action add_explain(CLI::App& command) {
  command.description("why each point has the rate that it has, and what would lift it");
  command.footer("Example:\n  verbscope explain results/local/quickstart.jsonl");
  struct Options {
    std::vector<std::string> results;
    std::string point, format = "text";
    bool all = false;
  };
  auto options = std::make_shared<Options>();
  add_results(command, options->results);
  command.add_option("--point", options->point, "only the point with this id, or whose id begins so");
  add_format(command, options->format, {"text", "json"});
  add_all(command, options->all);
  return [options] {
    const std::vector<Record> records = load_results(options->results, options->all);
    Json json = Json::array();
    for (const Record* record : with_id(chosen_records(records, options->all), options->point)) {
      if (options->format == "json") {
        json.push_back(explain_json(*record));
      } else {
        print_format(stdout, "{}\n", explain_text(*record, terminal_width(stdout)));
      }
    }
    if (options->format == "json") print_format(stdout, "{}\n", pretty_json(json));
    return 0;
  };
}

}  // namespace verbscope
