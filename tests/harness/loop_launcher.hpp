// A launcher for which every host is this machine. Like ssh, it passes one string to a shell.
#pragma once

#include <thread>

#include "harness/cluster/launcher.hpp"
#include "harness/cluster/shell_quote.hpp"
#include "tests/harness/fakes.hpp"

namespace verbscope {

class LoopLauncher : public Launcher {
 public:
  // The shell runs `before` first, like a login script: it may print or change the environment.
  explicit LoopLauncher(std::string before = ":") : before_(std::move(before)) {}
  const char* name() const override { return "loop"; }
  std::vector<std::string> command(const Host& host, const std::vector<std::string>& words) override {
    if (host.name == "unreachable") fail("no way to it");
    if (host.name == slow_host) std::this_thread::sleep_for(delay);
    return {"/bin/sh", "-c", before_ + "; exec " + shell_quote(words)};
  }
  void drop_connection(const Host& host) override { lost_hosts.push_back(host.name); }

  std::vector<std::string> lost_hosts;
  std::string slow_host;  // a connection to it takes `delay`
  std::chrono::milliseconds delay{0};

 private:
  std::string before_;
};

inline const std::string kHolder = VERBSCOPE_BINARY_DIR "/bin/verbscope";

inline Host host_named(const std::string& name) {
  Host host;
  host.name = name;
  return host;
}

}  // namespace verbscope
