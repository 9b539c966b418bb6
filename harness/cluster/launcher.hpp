// A launcher starts programs on other hosts, by OpenSSH or Slurm. Task watches the programs in the same way with both.
// Benchmarks on this machine need no launcher.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "common/fd.hpp"
#include "harness/cluster/hosts.hpp"
#include "harness/process/stop.hpp"

namespace verbscope {

class Launcher {
 public:
  virtual ~Launcher() = default;
  virtual const char* name() const = 0;
  // Connects to all hosts at the same time, if the launcher needs connections. If a host cannot be reached, the first
  // command() for it throws the reason.
  virtual void prepare(const std::vector<Host>& /*hosts*/) {}
  // Returns a local command that runs `words` on the host. Arguments arrive unchanged; the standard streams and the
  // exit status are passed on. Connects first if necessary; throws one line if that fails.
  virtual std::vector<std::string> command(const Host& host, const std::vector<std::string>& words) = 0;
  // Discards the state for a host that has stopped responding.
  virtual void drop_connection(const Host& host) = 0;
};

struct LauncherOptions {
  std::string name;        // "local", "ssh" or "slurm"
  std::string ssh_config;  // replaces the user's ssh configuration; empty: use that
  std::chrono::seconds connect_timeout{10};
};

// Creates the launcher; null for "local". Throws for an unknown name, a missing program, and "slurm" outside an
// allocation. `stop` ends the wait for a connection; it may be null, and must outlive the launcher.
std::unique_ptr<Launcher> make_launcher(const LauncherOptions& options, StopSource* stop);

// Runs a command on the host and returns its standard output, at most 1 MiB. Throws "HOST: WHAT: ..." with its last
// line if it fails or exceeds `limit`, and InterruptedError at a stop.
std::string remote_call(Launcher& launcher, const Host& host, const std::string& what,
                        const std::vector<std::string>& words, std::chrono::seconds limit, StopSource* stop,
                        Fd input = {});

}  // namespace verbscope
