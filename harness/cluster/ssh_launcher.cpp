#include "harness/cluster/ssh_launcher.hpp"

#include <algorithm>
#include <utility>

#include "common/error.hpp"
#include "harness/cluster/shell_quote.hpp"
#include "harness/process/find_program.hpp"

namespace verbscope {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::string_view kUp = "verbscope-connected";
// Time from the TCP connection, which has its own limit, to a running shell: key exchange and login on a busy or
// emulated host.
constexpr std::chrono::seconds kLoginTime{20};
// Connections opened at the same time: each is a process with three pipes.
constexpr std::size_t kAtOnce = 64;

std::string destination(const Host& host) {
  return host.user + "@" + host.management_address() + ":" + std::to_string(host.ssh_port);
}

}  // namespace

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
  const auto hear = [&connection, heard = std::string()](std::string_view chunk) mutable {
    if (connection.up) return;
    heard.append(chunk.substr(0, 4096 - std::min<std::size_t>(4096, heard.size())));
    connection.up = heard.find(kUp) != std::string::npos;
  };
  connection.child =
      std::make_unique<Child>(ssh(host, connection.socket, {"-o", "ControlMaster=yes", "-o", "ControlPersist=no"},
                                  {"sh", "-c", fmt::format("echo {}; exec cat", kUp)}),
                              hear, std::vector<std::string>{}, std::move(read_end));
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
      connection->failure = "ssh: cannot connect: " + (tail.empty() ? "it ended without a word" : tail.back());
    } else {
      connection->failure =
          end == WaitEnd::interrupted ? "ssh: interrupted" : fmt::format("ssh: no answer after {} s", limit.count());
    }
  }
}

void SshLauncher::prepare(const std::vector<Host>& hosts) {
  for (std::span<const Host> rest(hosts); !rest.empty();) {
    const std::size_t count = std::min(rest.size(), kAtOnce);
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

void SshLauncher::lost(const Host& host) {
  connections_.erase(destination(host));
}

}  // namespace verbscope
