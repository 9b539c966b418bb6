// verbscope: sweeps of the benchmarks, and what their records say.
#include <algorithm>
#include <memory>

#include "analysis/commands.hpp"
#include "common/cli.hpp"
#include "harness/benchmarks.hpp"
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
  add("compare", "records beside the model and the published figures", add_compare_command);
  add("explain", "why each point has the rate that it has, and what would lift it", add_explain_command);
  add("diff", "whether the points of one results file are slower or faster than those of another", add_diff_command);
  add("report", "records as one interactive page that opens offline", add_report_command);
  add("plot", "a figure of the records as SVG or PDF", add_plot_command);
  add("export", "records in shapes that other tools read", add_export_command);
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
