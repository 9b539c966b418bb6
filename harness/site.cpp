#include "harness/site.hpp"

#include <algorithm>

namespace verbscope {

bool is_here(const Host& host) {
  return host.user.empty() && host.management.empty() && host.ssh_port == 0 && is_this_machine(host.name);
}

std::vector<Host> each_once(const std::vector<Host>& hosts) {
  std::vector<Host> out;
  for (const Host& host : hosts) {
    if (std::ranges::find(out, host.name, &Host::name) == out.end()) out.push_back(host);
  }
  return out;
}

Site::Site(const std::string& hosts, LauncherOptions options, const std::filesystem::path& folder,
           const std::vector<std::string>& benchmarks, int port, StopSource* stop)
    : target_(parse_target(hosts)) {
  target_.port = port;
  const std::vector<Host> all = target_.cast ? each_once(target_.cast->all()) : std::vector<Host>();
  if (options.name.empty()) {
    options.name = hosts == "slurm" ? "slurm" : std::ranges::all_of(all, is_here) ? "local" : "ssh";
  }
  launcher_ = make_launcher(options, stop);
  target_.launcher = launcher_.get();
  if (!launcher_) {
    require_local(target_, hosts);
    return;
  }
  if (options.name == "ssh" && !target_.cast) fail_usage("--launcher ssh: --hosts {} names no host", hosts);
  std::vector<std::string> names = benchmarks;
  names.push_back("verbscope");
  std::vector<Program> programs;
  for (const Host& host : all) {
    if (options.name == "ssh" && is_here(host)) continue;
    if (programs.empty()) programs = hash_programs(folder, names);
    deployment_.deploy(*launcher_, host, programs, stop);
  }
  target_.deployment = &deployment_;
}

}  // namespace verbscope
