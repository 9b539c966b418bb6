// `verbscope explain`: why each point has the rate that it has, and what would lift it.
#include "analysis/explain.hpp"

#include <memory>
#include <optional>

#include "analysis/points.hpp"
#include "common/cli.hpp"
#include "common/paths.hpp"
#include "common/terminal.hpp"
#include "harness/commands/command.hpp"
#include "harness/commands/shared_options.hpp"
#include "harness/sweep/parallel.hpp"
#include "harness/trace/explain_trace.hpp"
#include "harness/what_if/what_if.hpp"

namespace verbscope {
namespace {

// Of more points than these runs are made only when they are asked for.
constexpr std::size_t kMostRunUnasked = 3;

struct ExplainOptions {
  std::vector<std::string> results;
  std::string point, format = "text", cluster;
  bool all = false, what_if = false, closed_form = false;
  int jobs = 0;
};

// The records whose id begins with `id`; throws a UsageError when there are none.
std::vector<const Record*> with_id(std::vector<const Record*> records, const std::string& id) {
  if (id.empty()) return records;
  std::erase_if(records, [&id](const Record* record) { return !point_id(*record).starts_with(id); });
  if (records.empty()) fail_usage("--point: no point has the id {}; `verbscope explain` prints them", dump_json(id));
  return records;
}

// Whether points run again: asked for, or few. Of many that stay in closed form it is said how to ask.
bool wants_runs(const ExplainOptions& options, std::size_t points) {
  if (options.closed_form) return false;
  if (options.what_if || points <= kMostRunUnasked) return true;
  tell_error(
      fmt::format("{} points are explained in closed form; --what_if runs each again on simulated copies of its "
                  "cluster, --point ID one of them",
                  points));
  return false;
}

int explain_points(const ExplainOptions& options) {
  check_cluster(options.cluster);
  const std::vector<Record> records = load_results(options.results, options.all);
  const auto chosen = with_id(chosen_records(records, options.all), options.point);
  std::optional<Interrupt> interrupt;
  if (wants_runs(options, chosen.size())) interrupt.emplace();
  Json json = Json::array();
  for (const Record* record : chosen) {
    if (is_trace(*record)) {
      if (options.format == "json") {
        json.push_back(explain_trace_json(*record, options.cluster));
      } else {
        print_format(stdout, "{}\n", explain_trace_text(*record, options.cluster, terminal_width(stdout)));
      }
      continue;
    }
    std::optional<WhatIf> runs;
    if (interrupt && record->status == RecordStatus::ok) {
      runs = what_if(*record, {.folder = program_folder(),
                               .cluster = options.cluster,
                               .jobs = job_count(options.jobs),
                               .stop = &*interrupt,
                               .told = tell_error});
    }
    if (options.format == "json") {
      json.push_back(explain_json(*record, runs ? &*runs : nullptr));
    } else {
      print_format(stdout, "{}\n", explain_text(*record, terminal_width(stdout), runs ? &*runs : nullptr));
    }
  }
  if (options.format == "json") print_format(stdout, "{}\n", pretty_json(json));
  return 0;
}

}  // namespace

Action add_explain(CLI::App& command) {
  command.description("why each point has the rate that it has, and what would lift it");
  command.footer("Example:\n  verbscope explain results/local/quickstart.jsonl");
  auto options = std::make_shared<ExplainOptions>();
  add_results(command, options->results);
  command.add_option("--point", options->point, "only the point with this id, or whose id begins so");
  CLI::Option* what_if = command.add_flag(
      "--what_if", options->what_if,
      fmt::format("run each point again on simulated copies of its cluster, not only when there are {} "
                  "at most",
                  kMostRunUnasked));
  command.add_flag("--closed_form", options->closed_form, "run nothing: limits and gains by loads and model alone")
      ->excludes(what_if);
  command.add_option("--cluster", options->cluster,
                     "the simulated cluster that is like the one of hardware records; of traces any");
  command.add_option("--jobs", options->jobs, "runs at a time")
      ->default_str("one for each CPU")
      ->transform(whole_number(1, 1024));
  add_format(command, options->format, {"text", "json"});
  add_all(command, options->all);
  return [options] { return explain_points(*options); };
}

}  // namespace verbscope
