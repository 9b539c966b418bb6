// `verbscope deploy`: copies the programs to the hosts of a file before a run, or removes them.
#include <memory>

#include "common/paths.hpp"
#include "common/terminal.hpp"
#include "harness/commands/command.hpp"
#include "harness/commands/shared_options.hpp"
#include "harness/point/site.hpp"
#include "harness/sweep/benchmarks.hpp"

namespace verbscope {
namespace {

struct DeployOptions {
  std::string hosts;
  LauncherOptions launcher{.name = "ssh", .ssh_config = ""};
  std::vector<std::string> benchmarks;  // empty: all
  bool clean = false;
};

// Prints one line per host that failed. Returns 1 if there is one.
int deploy_to_all(const DeployOptions& options, std::FILE* out) {
  Interrupt interrupt;
  const std::unique_ptr<Launcher> launcher = make_launcher(options.launcher, &interrupt);
  if (!launcher) fail_usage("--launcher: local needs no deployment");
  const std::vector<Host> hosts = distinct_hosts(read_hosts(options.hosts));
  std::vector<std::string> names = options.benchmarks;
  if (names.empty()) names = benchmark_names();
  for (const std::string& name : names) benchmark_binary(program_folder(), name);  // throws for an unknown name
  names.push_back("verbscope");
  const std::vector<Program> programs =
      options.clean ? std::vector<Program>() : hash_programs(program_folder(), names, &interrupt);
  launcher->prepare(hosts);
  Deployment deployment;
  const auto treat = [&](const Host& host) {
    if (options.clean) {
      remove_deployed(*launcher, host, &interrupt);
      print_format(out, "{}: clean\n", host.name);
    } else {
      const std::size_t copied = deployment.deploy(*launcher, host, programs, &interrupt);
      print_format(out, "{}: {} programs copied, {} already present\n", host.name, copied, programs.size() - copied);
    }
  };
  return try_each(hosts, treat, print_error) ? 0 : 1;
}

}  // namespace

Action add_deploy(CLI::App& command) {
  command.description("copy the programs to the hosts");
  command.footer("Example:\n  verbscope deploy --hosts hosts.txt");
  auto options = std::make_shared<DeployOptions>();
  command
      .add_option("--hosts", options->hosts,
                  "a hosts file, host names (node1,node2), localhost, or slurm for this allocation")
      ->required();
  add_launcher(command, options->launcher, "ssh or slurm (default ssh)");
  command.add_option("--benchmarks", options->benchmarks, "copy only these programs, such as send_rate,read_rate")
      ->default_str("all")
      ->delimiter(',');
  command.add_flag("--clean", options->clean, "remove the deployed programs instead");
  return [options] { return deploy_to_all(*options, stdout); };
}

}  // namespace verbscope
