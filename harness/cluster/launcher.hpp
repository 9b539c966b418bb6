// The way to a host: what differs between OpenSSH and Slurm. The programs that run there are watched in the same way
// behind both (task.hpp). A benchmark on this machine needs no launcher.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "harness/cluster/hosts.hpp"
#include "harness/process/stop.hpp"

namespace verbscope {

class Launcher {
 public:
  virtual ~Launcher() = default;
  virtual const char* name() const = 0;
  // Connects to all of the hosts at the same time, where that is needed: the first command for a host that could not be
  // reached throws why.
  virtual void prepare(const std::vector<Host>& /*hosts*/) {}
  // The command here that runs `words` there: arguments arrive unchanged, the three standard streams and the exit
  // status are passed on. Connects first where that is needed; throws one line when it cannot.
  virtual std::vector<std::string> command(const Host& host, const std::vector<std::string>& words) = 0;
  // The host has stopped answering: what is kept for it is of no use any more.
  virtual void lost(const Host& host) = 0;
};

struct LauncherOptions {
  std::string name;        // "local", "ssh" or "slurm"
  std::string ssh_config;  // instead of the user's own ssh configuration; empty: that
  std::chrono::seconds connect_timeout{10};
};

// Makes the launcher of options.name; null for "local". Throws for an unknown name, a missing program, and "slurm"
// outside an allocation. `stop` ends the wait for a connection, may be null, and must live as long as the launcher.
std::unique_ptr<Launcher> make_launcher(const LauncherOptions& options, StopSource* stop);

}  // namespace verbscope
