// `verbscope doctor`: prints facts of each host that affect measurements, with findings and remedies.
#include <memory>

#include "common/paths.hpp"
#include "common/terminal.hpp"
#include "harness/commands/command.hpp"
#include "harness/commands/shared_options.hpp"
#include "harness/doctor/report.hpp"
#include "harness/point/site.hpp"

namespace verbscope {
namespace {

struct DoctorOptions {
  std::string hosts;
  LauncherOptions launcher{.name = "", .ssh_config = ""};
  bool json = false;
};

HostRequest request_of(const Host& host) {
  return {.device = host.device, .ib_port = host.ib_port, .cores = host.cores, .numa_node = host.numa_node};
}

Json findings_json(const std::vector<Finding>& findings) {
  Json out = Json::array();
  for (const Finding& finding : findings) out.push_back(Json{{"what", finding.problem}, {"todo", finding.remedy}});
  return out;
}

void show(const Host& host, const Json& facts, bool json, std::FILE* out) {
  const std::vector<Finding> findings = host_findings(facts, request_of(host));
  if (json) {
    print_format(out, "{}\n",
                 dump_json(Json{{"host", host.name}, {"facts", facts}, {"findings", findings_json(findings)}}));
  } else {
    print_text(out, host_report(host.name, facts, findings));
  }
}

// Prints one line per host that could not be examined. Returns 1 if there is one.
int examine_all(const DoctorOptions& options, std::FILE* out) {
  if (options.hosts.empty()) {
    Host here;
    here.name = "localhost";
    show(here, local_facts(), options.json, out);
    return 0;
  }
  Interrupt interrupt;
  const std::vector<Host> hosts = read_hosts(options.hosts);
  const std::unique_ptr<Launcher> launcher =
      launcher_for(options.hosts, distinct_hosts(hosts), options.launcher, &interrupt);
  const std::vector<Host> others = remote_hosts(distinct_hosts(hosts), launcher.get());
  std::vector<Program> programs;
  if (!others.empty()) {
    launcher->prepare(others);
    programs = hash_programs(program_folder(), {"verbscope"}, &interrupt);
  }
  Deployment deployment;
  const auto examine = [&](const Host& host) {
    if (!remote_hosts({host}, launcher.get()).empty()) deployment.deploy(*launcher, host, programs, &interrupt);
    show(host, read_host_facts(host, launcher.get(), deployment, &interrupt), options.json, out);
  };
  return try_each(hosts, examine, print_error) ? 0 : 1;
}

}  // namespace

Action add_doctor(CLI::App& command) {
  command.description("report what on each host affects a measurement");
  command.footer("Example:\n  verbscope doctor --hosts hosts.txt");
  auto options = std::make_shared<DoctorOptions>();
  command.add_option("--hosts", options->hosts,
                     "a hosts file, host names (node1,node2), or slurm (default: this machine)");
  add_launcher(command, options->launcher, kAnyLauncher);
  command.add_flag("--json", options->json, "print one line of JSON per host");
  return [options] { return examine_all(*options, stdout); };
}

}  // namespace verbscope
