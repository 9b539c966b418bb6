// Runs programs through the system's OpenSSH client. Each host has one connection, opened at the first use and shared
// by all commands. It is a child of this process, so that nothing remains. Never asks for a password; host keys are
// checked as the user configured.
#pragma once

#include <map>
#include <span>

#include "harness/cluster/launcher.hpp"
#include "harness/process/child.hpp"
#include "harness/process/temp_folder.hpp"

namespace verbscope {

class SshLauncher : public Launcher {
 public:
  // Throws if there is no ssh.
  SshLauncher(const LauncherOptions& options, StopSource* stop);
  const char* name() const override { return "ssh"; }
  void prepare(const std::vector<Host>& hosts) override;
  std::vector<std::string> command(const Host& host, const std::vector<std::string>& words) override;
  void lost(const Host& host) override;

 private:
  // The connection that commands share: it runs `cat` on the host until its input is closed.
  struct Connection {
    std::string socket;
    Fd input;
    std::unique_ptr<Child> child;
    bool up = false;
    std::string failure;  // why it could not be opened; reset once a command has thrown it

    bool settled() const { return up || !child->running(); }
  };

  std::vector<std::string> ssh(const Host& host, const std::string& socket, const std::vector<std::string>& options,
                               const std::vector<std::string>& words) const;
  void open(const Host& host, Connection& connection);
  void open_all(std::span<const Host> hosts);

  std::string ssh_, config_;
  std::chrono::seconds connect_timeout_;
  StopSource* stop_;
  TempFolder sockets_;  // mode 0700
  int next_socket_ = 0;
  std::map<std::string, Connection> connections_;
};

}  // namespace verbscope
