#include "harness/point/site.hpp"

#include <algorithm>
#include <string_view>

#include "harness/point/host_inquiry.hpp"

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

std::unique_ptr<Launcher> launcher_for(const std::string& hosts, const std::vector<Host>& all, LauncherOptions options,
                                       StopSource* stop) {
  if (options.name.empty()) {
    options.name = hosts == "slurm" ? "slurm" : std::ranges::all_of(all, is_here) ? "local" : "ssh";
  }
  if (options.name == "ssh" && all.empty()) fail_usage("--launcher ssh: --hosts {} names no host", hosts);
  return make_launcher(options, stop);
}

void deploy_if_needed(Deployment& deployment, Launcher* launcher, const std::vector<Host>& hosts,
                      const std::filesystem::path& folder, const std::vector<std::string>& benchmarks,
                      StopSource* stop) {
  if (launcher == nullptr) return;
  std::vector<std::string> names = benchmarks;
  names.push_back("verbscope");
  std::vector<Host> others = hosts;
  if (launcher->name() == std::string_view("ssh")) std::erase_if(others, is_here);
  if (others.empty()) return;
  launcher->prepare(others);
  const std::vector<Program> programs = hash_programs(folder, names);
  std::string failures;
  for (const Host& host : others) {
    try {
      deployment.deploy(*launcher, host, programs, stop);
    } catch (const InterruptedError&) {
      throw;
    } catch (const Error& error) {
      failures += (failures.empty() ? "" : "; ") + std::string(error.what());
    }
  }
  if (!failures.empty()) fail("{}", failures);
}

Site::Site(const std::string& hosts, const LauncherOptions& options, const std::filesystem::path& folder,
           const std::vector<std::string>& benchmarks, int port, StopSource* stop)
    : target_(parse_target(hosts)) {
  target_.port = port;
  const std::vector<Host> all = target_.cast ? each_once(target_.cast->all()) : std::vector<Host>();
  launcher_ = launcher_for(hosts, all, options, stop);
  if (!launcher_) require_local(target_, hosts);
  deploy_if_needed(deployment_, launcher_.get(), all, folder, benchmarks, stop);
  target_.launcher = launcher_.get();
  target_.deployment = launcher_ ? &deployment_ : nullptr;
  for (const Host& host : all) hosts_[host.name] = facts_of(host, launcher_.get(), deployment_, stop);
  if (all.empty()) hosts_["localhost"] = facts_here();
  if (!target_.cast) return;
  for (const Host& host : target_.cast->all()) require_device(host, hosts_.at(host.name));
}

}  // namespace verbscope
