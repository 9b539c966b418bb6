// The site of a sweep: the target, the way to its hosts, and the programs there.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "harness/cluster/deploy.hpp"
#include "harness/cluster/launcher.hpp"
#include "harness/point/point_runner.hpp"

namespace verbscope {

// Whether a host of the file is this machine, reached without a launcher: named as it, and with neither a user, a
// management address nor an ssh port of its own.
bool is_here(const Host& host);

// The hosts without those whose name came before: a hosts file often has a line for each device of a host.
std::vector<Host> each_once(const std::vector<Host>& hosts);

// The launcher for hosts. With an empty options.name it is slurm for "slurm", ssh when one of `all` is not here, else
// none (null), as for "local". Throws what make_launcher throws.
std::unique_ptr<Launcher> launcher_for(const std::string& hosts, const std::vector<Host>& all, LauncherOptions options,
                                       StopSource* stop);

// Brings `verbscope` and the benchmarks in `folder` to those of the hosts that a launcher reaches. Throws one line with
// each host that failed.
void deploy_if_needed(Deployment& deployment, Launcher* launcher, const std::vector<Host>& hosts,
                      const std::filesystem::path& folder, const std::vector<std::string>& benchmarks,
                      StopSource* stop);

class Site {
 public:
  // `hosts` is what --hosts says; the server listens on `port`, 0: any. Programs are deployed to the hosts that need
  // it, and each host is asked what it is. Throws one line with the host, for one without a device as well.
  Site(const std::string& hosts, const LauncherOptions& options, const std::filesystem::path& folder,
       const std::vector<std::string>& benchmarks, int port, StopSource* stop);
  Site(const Site&) = delete;
  Site& operator=(const Site&) = delete;

  const RunTarget& target() const { return target_; }
  // "local", "ssh" or "slurm".
  const char* launcher_name() const { return launcher_ ? launcher_->name() : "local"; }
  // The facts of each host (host_facts), by its name.
  const Json& host_facts() const { return hosts_; }

 private:
  RunTarget target_;
  std::unique_ptr<Launcher> launcher_;
  Deployment deployment_;
  Json hosts_ = Json::object();
};

}  // namespace verbscope
