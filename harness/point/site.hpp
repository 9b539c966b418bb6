// The place where a sweep runs: the target, the launcher for its hosts, and the deployed programs.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/json.hpp"
#include "common/record.hpp"
#include "harness/cluster/deploy.hpp"
#include "harness/cluster/hosts.hpp"
#include "harness/cluster/launcher.hpp"
#include "harness/point/point_runner.hpp"
#include "harness/sweep/sweep.hpp"

namespace verbscope {

// True if the host is this machine and needs no launcher: it has this machine's name and no user, management address or
// ssh port.
bool is_local(const Host& host);

// The hosts without repeated names: a hosts file often has one line per device of a host.
std::vector<Host> distinct_hosts(const std::vector<Host>& hosts);

// The launcher for `hosts`. If options.name is empty: slurm for "slurm", ssh if one of `all` is not this machine, else
// none (null). Null for "local". Throws as make_launcher does.
std::unique_ptr<Launcher> launcher_for(const std::string& hosts, const std::vector<Host>& all, LauncherOptions options,
                                       StopSource* stop);

// Copies `verbscope` and the benchmarks in `folder` to all hosts that need a launcher. Throws one line per host that
// failed.
void deploy_if_needed(Deployment& deployment, Launcher* launcher, const std::vector<Host>& hosts,
                      const std::filesystem::path& folder, const std::vector<std::string>& benchmarks,
                      StopSource* stop);

// The hosts whose programs have to be deployed: those that `launcher` runs programs on. None if it is null.
std::vector<Host> remote_hosts(std::vector<Host> hosts, const Launcher* launcher);

// Calls the action for each host and passes the text of each Error that it throws to `on_failure`. InterruptedError
// ends the loop. Returns true if no host failed.
bool try_each(const std::vector<Host>& hosts, const std::function<void(const Host&)>& action,
              const std::function<void(const std::string&)>& on_failure);

class Site {
 public:
  // `hosts`: the value of --hosts; `port`: of the server, 0: any. Deploys programs to the hosts that need them, and
  // reads each host's facts. Throws one line with the host, also if it has no device.
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

Json local_facts();

// host_facts of the host, read through the launcher; of this machine if nothing was deployed to the host. Throws one
// line with the host's name.
Json read_host_facts(const Host& host, Launcher* launcher, const Deployment& deployment, StopSource* stop);

// Adds to the environment of every record how and when the point was started, and on which hosts.
class Provenance {
 public:
  using Time = std::chrono::system_clock::time_point;

  Provenance(const Site& site, const Sweep& sweep);

  // Adds environment.harness {launcher, command_line, the members of sweep_properties, started, ended; times with zone}
  // and environment.hosts, the facts of each host. `started`: when the point began; its end is now.
  void add_to(Record& record, const Point& point, Time started) const;

 private:
  const Site& site_;
  const Sweep& sweep_;
  Json command_line_;
};

}  // namespace verbscope
