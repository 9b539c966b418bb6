#include "harness/cluster/launcher.hpp"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <span>
#include <utility>

#include "common/error.hpp"
#include "harness/cluster/shell_quote.hpp"
#include "harness/process/child.hpp"
#include "harness/process/temp_folder.hpp"

namespace verbscope {
namespace {

// Runs programs as steps of the current Slurm allocation: one srun per program.
class SlurmLauncher : public Launcher {
 public:
  // Throws outside an allocation (SLURM_JOB_ID is not set) or without srun.
  SlurmLauncher();
  const char* name() const override { return "slurm"; }
  std::vector<std::string> command(const Host& host, const std::vector<std::string>& words) override;
  void drop_connection(const Host&) override {}

 private:
  std::string srun_;
};

// Runs programs through the system's OpenSSH client. Each host has one connection, opened at the first use and shared
// by all commands. It is a child of this process, so that nothing remains. Never asks for a password; host keys are
// checked as the user configured.
class SshLauncher : public Launcher {
 public:
  // Throws if there is no ssh.
  SshLauncher(const LauncherOptions& options, StopSource* stop);
  const char* name() const override { return "ssh"; }
  void prepare(const std::vector<Host>& hosts) override;
  std::vector<std::string> command(const Host& host, const std::vector<std::string>& words) override;
  void drop_connection(const Host& host) override;

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

SlurmLauncher::SlurmLauncher() {
  if (std::getenv("SLURM_JOB_ID") == nullptr) {
    fail(
        "--launcher slurm: not inside a Slurm allocation; use salloc or sbatch, or submit the sweep as a job array "
        "with --array");
  }
  srun_ = find_program("srun");
}

// Steps overlap, because a server and its client may share a node, and points may run at the same time.
std::vector<std::string> SlurmLauncher::command(const Host& host, const std::vector<std::string>& words) {
  std::vector<std::string> out{srun_,       "--quiet", "--nodes=1",       "--ntasks=1",
                               "--overlap", "--mem=0", "--cpu-bind=none", "--unbuffered"};
  if (!host.name.empty()) out.push_back("--nodelist=" + host.name);
  out.push_back("--");
  out.insert(out.end(), words.begin(), words.end());
  return out;
}

using Clock = std::chrono::steady_clock;

constexpr std::string_view kConnected = "verbscope-connected";
// Time from the TCP connection, which has its own limit, to a running shell: key exchange and login on a busy or
// emulated host.
constexpr std::chrono::seconds kLoginTime{20};
// Connections opened at the same time: each is a process with three pipes.
constexpr std::size_t kMaxParallel = 64;

std::string destination(const Host& host) {
  return host.user + "@" + host.management_address() + ":" + std::to_string(host.ssh_port);
}

SshLauncher::SshLauncher(const LauncherOptions& options, StopSource* stop)
    : ssh_(find_program("ssh")), config_(options.ssh_config), connect_timeout_(options.connect_timeout), stop_(stop) {}

std::vector<std::string> SshLauncher::ssh(const Host& host, const std::string& socket,
                                          const std::vector<std::string>& options,
                                          const std::vector<std::string>& words) const {
  std::vector<std::string> out{ssh_, "-T", "-S", socket};
  if (!config_.empty()) out.insert(out.end(), {"-F", config_});
  for (const char* option : {"BatchMode=yes", "LogLevel=ERROR", "RemoteCommand=none", "PermitLocalCommand=no",
                             "ClearAllForwardings=yes", "ForwardAgent=no", "ForwardX11=no", "EscapeChar=none"}) {
    out.insert(out.end(), {"-o", option});
  }
  out.insert(out.end(), {"-o", fmt::format("ConnectTimeout={}", connect_timeout_.count())});
  if (!host.user.empty()) out.insert(out.end(), {"-l", host.user});
  if (host.ssh_port != 0) out.insert(out.end(), {"-p", std::to_string(host.ssh_port)});
  out.insert(out.end(), options.begin(), options.end());
  out.insert(out.end(), {"--", host.management_address(), shell_quote(words)});
  return out;
}

void SshLauncher::open(const Host& host, Connection& connection) {
  connection.socket = sockets_.file(std::to_string(next_socket_++));
  auto [read_end, write_end] = make_pipe();
  connection.input = std::move(write_end);
  connection.up = false;
  const auto on_output = [&connection, received = std::string()](std::string_view chunk) mutable {
    if (connection.up) return;
    received.append(chunk.substr(0, 4096 - std::min<std::size_t>(4096, received.size())));
    connection.up = received.find(kConnected) != std::string::npos;
  };
  connection.child =
      std::make_unique<Child>(ssh(host, connection.socket, {"-o", "ControlMaster=yes", "-o", "ControlPersist=no"},
                                  {"sh", "-c", fmt::format("echo {}; exec cat", kConnected)}),
                              on_output, std::vector<std::string>{}, std::move(read_end));
}

void SshLauncher::open_all(std::span<const Host> hosts) {
  std::vector<Connection*> opening;
  std::vector<Child*> children;
  for (const Host& host : hosts) {
    Connection& connection = connections_[destination(host)];
    if (connection.child || !connection.failure.empty()) continue;
    open(host, connection);
    opening.push_back(&connection);
    children.push_back(connection.child.get());
  }
  const auto limit = connect_timeout_ + kLoginTime;
  const WaitEnd end = wait_children(children, Clock::now() + limit, stop_,
                                    [&opening] { return std::ranges::all_of(opening, &Connection::settled); });
  for (Connection* connection : opening) {
    if (connection->up && connection->child->running()) continue;
    const std::vector<std::string> tail = connection->child->tail();
    const bool ended = !connection->child->running();
    connection->child.reset();
    if (ended) {
      connection->failure = "ssh: cannot connect: " + (tail.empty() ? "ssh printed no reason" : tail.back());
    } else {
      connection->failure =
          end == WaitEnd::interrupted ? "ssh: interrupted" : fmt::format("ssh: no response after {} s", limit.count());
    }
  }
}

void SshLauncher::prepare(const std::vector<Host>& hosts) {
  for (std::span<const Host> rest(hosts); !rest.empty();) {
    const std::size_t count = std::min(rest.size(), kMaxParallel);
    open_all(rest.first(count));
    rest = rest.subspan(count);
  }
}

std::vector<std::string> SshLauncher::command(const Host& host, const std::vector<std::string>& words) {
  Connection& connection = connections_[destination(host)];
  if (connection.child) {
    wait_children({connection.child.get()}, Clock::now() + std::chrono::milliseconds(1), nullptr,
                  [] { return false; });  // collects its exit status
    if (!connection.child->running()) connection.child.reset();
  }
  open_all({&host, 1});
  if (!connection.failure.empty()) fail("{}", std::exchange(connection.failure, ""));
  return ssh(host, connection.socket, {"-o", "ControlMaster=no"}, words);
}

void SshLauncher::drop_connection(const Host& host) {
  connections_.erase(destination(host));
}

constexpr std::size_t kMaxOutput = 1 << 20;

}  // namespace

std::unique_ptr<Launcher> make_launcher(const LauncherOptions& options, StopSource* stop) {
  if (options.name == "local") return nullptr;
  if (options.name == "ssh") return std::make_unique<SshLauncher>(options, stop);
  if (options.name == "slurm") return std::make_unique<SlurmLauncher>();
  fail_usage("--launcher: expected local, ssh or slurm, got \"{}\"", options.name);
}

std::string remote_call(Launcher& launcher, const Host& host, const std::string& what,
                        const std::vector<std::string>& words, std::chrono::seconds limit, StopSource* stop, Fd input) {
  try {
    std::string output;
    Child child(
        launcher.command(host, words),
        [&output](std::string_view chunk) {
          output.append(chunk.substr(0, kMaxOutput - std::min(kMaxOutput, output.size())));
        },
        {}, std::move(input));
    const WaitEnd end = wait_for_end(child, std::chrono::steady_clock::now() + limit, stop);
    if (end == WaitEnd::interrupted) fail("interrupted");
    if (end == WaitEnd::timeout) {
      launcher.drop_connection(host);
      fail("not finished after {} s", limit.count());
    }
    if (child.succeeded()) return output;
    fail("{}", child.end_and_last_line());
  } catch (const Error& error) {
    if (stop != nullptr && stop->pending()) {
      throw InterruptedError(fmt::format("host {}: {}: interrupted", host.name, what));
    }
    fail("host {}: {}: {}", host.name, what, error.what());
  }
}

}  // namespace verbscope
