// verbscope: sweeps of the benchmarks, and what their records say.
#include <algorithm>
#include <memory>

#include "analysis/commands.hpp"
#include "common/cli.hpp"
#include "harness/cluster/hold.hpp"
#include "harness/commands/deploy_command.hpp"
#include "harness/commands/doctor_command.hpp"
#include "harness/commands/hosts_command.hpp"
#include "harness/commands/job_array.hpp"
#include "harness/commands/list_command.hpp"
#include "harness/commands/predict_command.hpp"
#include "harness/commands/recalibrate_command.hpp"
#include "harness/commands/reproduce_command.hpp"
#include "harness/commands/run_command.hpp"
#include "harness/sweep/benchmarks.hpp"

namespace verbscope {
namespace {

using Command = std::function<int()>;

Command add_list(CLI::App&) {
  return [] { return list_all(program_folder(), stdout); };
}

Command add_hosts(CLI::App& command) {
  auto hosts = std::make_shared<std::string>();
  command.add_option("hosts", *hosts, "a hosts file, or slurm for this allocation")->required();
  return [hosts] { return show_hosts(*hosts, stdout); };
}

Command add_collect(CLI::App& command) {
  auto results = std::make_shared<std::string>();
  command.add_option("results", *results, "the results file of a run with --array")->required();
  return [results] { return collect_parts(*results, stdout); };
}

Command add_hold(CLI::App&) {
  return [] { return hold_program(); };
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
  const auto add = [&](const char* name, const char* help, std::function<int()> (*make)(CLI::App&)) {
    CLI::App* command = app.add_subcommand(name, help);
    commands.emplace_back(command, make(*command));
  };
  add("run", "run every point of a sweep, one record each", add_run_command);
  add("hosts", "what a hosts file means", add_hosts);
  add("deploy", "bring the programs to the hosts of a file", add_deploy_command);
  add("collect", "join the records of a job array", add_collect);
  add("hold", "run one program for a harness elsewhere", add_hold);
  add("doctor", "what of each host bears on a measurement", add_doctor_command);
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
