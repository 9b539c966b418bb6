// verbscope: sweeps of the benchmarks, and what their records say.
#include <algorithm>
#include <memory>

#include "common/cli.hpp"
#include "harness/benchmarks.hpp"
#include "harness/compare.hpp"
#include "harness/list_command.hpp"
#include "harness/predict_command.hpp"
#include "harness/recalibrate_command.hpp"
#include "harness/reproduce_command.hpp"
#include "harness/run_command.hpp"

namespace verbscope {
namespace {

using Command = std::function<int()>;

Command add_run(CLI::App& command) {
  struct Options {
    RunOptions run;
    std::string timeout;
  };
  auto options = std::make_shared<Options>();
  command.add_option("sweep", options->run.sweep, "a sweep file, or a name in configs/sweeps")->required();
  command.add_option("--hosts", options->run.hosts, "sim:NAME, null, or a hosts file")->required();
  command.add_option("--out", options->run.out, "append records here (results/local/SWEEP.jsonl)");
  command.add_flag("--resume", options->run.resume, "leave out points that are ok in the file");
  command.add_option("--seed", options->run.seed, "instead of the sweep's");
  command.add_option("--repetitions", options->run.repetitions, "instead of the sweep's")->check(CLI::Range(1, 10'000));
  command.add_option("--set", options->run.set, "key=value for every point; may be repeated")->allow_extra_args(false);
  command.add_option("--timeout", options->timeout, "longest time of one point (120 s)");
  return [options] {
    if (!options->timeout.empty()) {
      const Picos timeout = parse_duration(options->timeout, "--timeout");
      options->run.timeout = std::chrono::ceil<std::chrono::milliseconds>(timeout);
    }
    return run_sweep(options->run, program_folder(), stdout);
  };
}

Command add_list(CLI::App&) {
  return [] { return list_all(program_folder(), stdout); };
}

Command add_compare(CLI::App& command) {
  struct Options {
    std::string results;
    bool json = false, all = false;
  };
  auto options = std::make_shared<Options>();
  command.add_option("results", options->results, "a results file")->required();
  command.add_flag("--json", options->json, "print JSON");
  command.add_flag("--all", options->all, "every record, not the last of each point only");
  return [options] {
    const Results results = read_results(options->results);
    for (const std::string& warning : results.warnings) fmt::print(stderr, "verbscope: warning: {}\n", warning);
    if (results.records.empty()) fail("{}: has no record", options->results);
    const std::vector<PublishedPoint> published = load_published();
    const std::vector<CompareRow> rows = compare_records(results.records, published, options->all);
    fmt::print("{}", options->json ? compare_json(rows).dump(2) + "\n" : compare_table(rows));
    return 0;
  };
}

Command add_recalibrate(CLI::App& command) {
  struct Options {
    std::string cluster;
    bool write = false;
  };
  auto options = std::make_shared<Options>();
  command.add_option("cluster", options->cluster, "a name in configs/clusters, or a profile's path")->required();
  command.add_flag("--write", options->write, "put the new values into the profile");
  return [options] { return recalibrate_cluster(options->cluster, options->write, program_folder(), stdout); };
}

int body(int argc, char** argv) {
  CLI::App app{"verbscope: what RDMA verbs cost on PCIe, measured, simulated and modelled"};
  app.require_subcommand(1);
  std::vector<std::pair<CLI::App*, Command>> commands;
  const auto add = [&](const char* name, const char* help, Command (*make)(CLI::App&)) {
    CLI::App* command = app.add_subcommand(name, help);
    commands.emplace_back(command, make(*command));
  };
  add("run", "run every point of a sweep, one record each", add_run);
  add("list", "benchmarks, clusters, sweeps", add_list);
  add("compare", "records beside the model and the published figures", add_compare);
  add("predict", "the closed-form model by itself", add_predict_command);
  add("reproduce", "the published figures of a paper on the simulated clusters", add_reproduce_command);
  add("recalibrate", "fit a cluster profile to its published figures", add_recalibrate);
  const auto named = [&](const auto& each) { return each.first->get_name() == argv[1]; };
  if (argc > 1 && argv[1][0] != '-' && std::ranges::none_of(commands, named)) {
    fail_usage("no command is called \"{}\"; --help lists them", argv[1]);
  }
  parse_args(app, argc, argv);
  for (const auto& [command, run] : commands) {
    if (command->parsed()) return run();
  }
  return 0;
}

}  // namespace
}  // namespace verbscope

int main(int argc, char** argv) {
  return verbscope::run_main("verbscope", argc, argv, verbscope::body);
}
