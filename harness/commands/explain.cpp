// `verbscope explain`: explains the rate of each point, and what would raise it.
#include "analysis/explain.hpp"

#include <atomic>
#include <memory>

#include "analysis/points.hpp"
#include "analysis/results_files.hpp"
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

// Number of changes tried for each of several points, unless the user gives a budget.
constexpr std::size_t kRunsOfMany = 12;

struct ExplainOptions {
  std::vector<std::string> results;
  std::string point, format = "text", cluster, budget, target;
  bool all = false, closed_form = false;
  int jobs = 0;
};

// The records whose id begins with `id`. Throws UsageError if there are none.
std::vector<const Record*> with_id(std::vector<const Record*> records, const std::string& id) {
  if (id.empty()) return records;
  std::erase_if(records, [&id](const Record* record) { return !point_id(*record).starts_with(id); });
  if (records.empty()) fail_usage("--point: no point has the id {}; `verbscope explain` prints the ids", dump_json(id));
  return records;
}

// Explains each record that is ok and not a trace, in order. Several points run at the same time; a single point runs
// its trials at the same time.
std::vector<Explanation> answers(const std::vector<const Record*>& records, const ExplainOptions& options) {
  std::vector<Explanation> out(records.size());
  if (options.closed_form) {
    std::ranges::transform(records, out.begin(), [](const Record* record) { return explain(*record); });
    return out;
  }
  Interrupt interrupt;
  RunCache cache(run_cache_of(options.results.front()));
  const std::size_t jobs = job_count(options.jobs);
  WhatIfOptions runs{.folder = program_folder(),
                     .cluster = options.cluster,
                     .jobs = records.size() > 1 ? 1 : jobs,
                     .stop = &interrupt};
  if (records.size() > 1) runs.budget = {.runs = kRunsOfMany, .given = true};
  if (!options.budget.empty()) runs.budget = parse_budget(options.budget);
  if (!options.target.empty()) runs.target = parse_target_rate(options.target);
  if (records.size() == 1) runs.notify = print_error;
  std::atomic<std::size_t> done = 0;
  const auto begin = std::chrono::steady_clock::now();
  std::atomic<long> reported = 0;
  run_parallel(records.size(), jobs, [&](std::size_t i) {
    out[i] = explain_by_runs(*records[i], runs, cache);
    const long tens = (std::chrono::steady_clock::now() - begin) / std::chrono::seconds(10);
    if (const std::size_t count = ++done; tens > reported.exchange(tens) && count < records.size())
      print_error(fmt::format("{} of {} points explained", count, records.size()));
  });
  return out;
}

int explain_points(const ExplainOptions& options) {
  check_cluster(options.cluster);
  if (options.closed_form && !options.target.empty())
    fail_usage("--target needs simulated runs: it cannot go with --closed_form");
  if (!options.budget.empty()) parse_budget(options.budget);
  if (!options.target.empty()) parse_target_rate(options.target);
  const std::vector<Record> records = load_results(options.results, false);
  const auto chosen = with_id(chosen_records(records, false), options.point);
  std::vector<const Record*> ran;
  for (const Record* record : chosen) {
    if (!is_trace(*record) && record->status != RecordStatus::failed) ran.push_back(record);
  }
  const std::vector<Explanation> explained = answers(ran, options);
  const std::size_t width = terminal_width(stdout);
  const bool json = options.format == "json";
  const bool details = json || options.all || !options.point.empty() || ran.size() < 2;
  if (!details) print_format(stdout, "{}\n", overview_text(explained, width));
  Json out = Json::array();
  auto next = explained.begin();
  for (const Record* record : chosen) {
    if (is_trace(*record)) {
      if (json) {
        out.push_back(explain_trace_json(*record, options.cluster));
      } else {
        print_format(stdout, "{}\n", explain_trace_text(*record, options.cluster, width));
      }
    } else if (record->status == RecordStatus::failed) {
      if (json) {
        out.push_back(failed_json(*record));
      } else {
        print_format(stdout, "{}\n", failed_text(*record));
      }
    } else if (const Explanation& it = *next++; json) {
      out.push_back(explain_json(it));
    } else if (details) {
      print_format(stdout, "{}\n", explain_text(it, width));
    }
  }
  if (json) print_format(stdout, "{}\n", pretty_json(out));
  if (details) return 0;
  if (!options.closed_form && options.budget.empty())
    print_format(stdout, "At most {} changes were tried per point; --budget 0 tries all.\n", kRunsOfMany);
  print_format(stdout, "--point ID explains one point in full, --all explains every point.\n");
  return 0;
}

}  // namespace

Action add_explain(CLI::App& command) {
  command.description("name the limit of each point, and changes that would raise its rate");
  command.footer("Example:\n  verbscope explain results/local/quickstart.jsonl");
  auto options = std::make_shared<ExplainOptions>();
  add_results(command, options->results);
  command.add_option("--point", options->point, "explain in full the point whose id begins with this");
  command.add_flag("--all", options->all, "explain every point in full (default: one line per point)");
  command.add_option(
      "--target", options->target,
      "find the fewest changes of options that reach this target, such as \"30 Mops\", \"90 Gb/s\", \"2 us\"");
  command
      .add_option("--budget", options->budget,
                  "limit the simulations per point, by number or by time such as 10s; 0: no limit")
      ->default_str("one point: all single changes, then combinations up to 60 runs; several points: 12 runs each");
  command.add_flag("--closed_form", options->closed_form, "run no simulations: use only loads and the model");
  command.add_option("--cluster", options->cluster,
                     "simulated cluster that stands for the hardware of the records; for traces, any cluster");
  command.add_option("--jobs", options->jobs, "run this many simulations at a time")
      ->default_str("one per CPU")
      ->transform(whole_number(1, 1024));
  add_format(command, options->format, {"text", "json"});
  return [options] { return explain_points(*options); };
}

}  // namespace verbscope
