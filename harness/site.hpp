// Where a sweep runs: the target, the way to its hosts, and the programs there.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "harness/cluster/deploy.hpp"
#include "harness/cluster/launcher.hpp"
#include "harness/point_runner.hpp"

namespace verbscope {

// Whether a host of the file is this machine, reached without a launcher: named as it, and with neither a user, a
// management address nor an ssh port of its own.
bool is_here(const Host& host);

// Without hosts whose name came before: one line a device is usual.
std::vector<Host> each_once(const std::vector<Host>& hosts);

class Site {
 public:
  // `hosts` is what --hosts says. With an empty options.name, the launcher is slurm for "slurm", ssh for a file with a
  // host that is not here, else none. Programs are deployed to the hosts that need it; the server listens on `port`, 0:
  // any. Throws one line with the host.
  Site(const std::string& hosts, LauncherOptions options, const std::filesystem::path& folder,
       const std::vector<std::string>& benchmarks, int port, StopSource* stop);
  Site(const Site&) = delete;
  Site& operator=(const Site&) = delete;

  const RunTarget& target() const { return target_; }
  // "local", "ssh" or "slurm".
  const char* launcher_name() const { return launcher_ ? launcher_->name() : "local"; }

 private:
  RunTarget target_;
  std::unique_ptr<Launcher> launcher_;
  Deployment deployment_;
};

}  // namespace verbscope
