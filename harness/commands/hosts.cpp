// `verbscope hosts`: prints how a hosts file is interpreted.
#include "harness/cluster/hosts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "analysis/text_table.hpp"
#include "common/terminal.hpp"
#include "harness/commands/command.hpp"

namespace verbscope {
namespace {

std::string or_dash(const std::string& text) {
  return text.empty() ? "-" : text;
}

std::string device_text(const Host& host) {
  return host.ib_port == 0 ? or_dash(host.device) : fmt::format("{}:{}", host.device, host.ib_port);
}

std::string cores_text(const Host& host) {
  return host.numa_node >= 0 ? fmt::format("of node {}", host.numa_node) : or_dash(host.cores);
}

std::vector<std::string> cells(const std::string& role, const Host& host) {
  return {role,
          host.name,
          or_dash(host.user),
          host.management_address() + (host.ssh_port ? fmt::format(" port {}", host.ssh_port) : ""),
          host.data_address(),
          device_text(host),
          host.gid_index < 0 ? "-" : std::to_string(host.gid_index),
          cores_text(host),
          host.line ? std::to_string(host.line) : "-"};
}

// `hosts`: a path, or "slurm" for the hosts of this allocation. Prints one line per host, and the roles. Throws as
// read_hosts and assign_roles do.
int show_hosts(const std::string& hosts, std::FILE* out) {
  const std::vector<Host> parsed = read_hosts(hosts);
  const RoleAssignment roles = assign_roles(parsed, hosts);
  TextTable table({{"",
                    {{"role", true},
                     {"host", true},
                     {"user", true},
                     {"management", true},
                     {"data", true},
                     {"device", true},
                     {"gid"},
                     {"cores", true},
                     {"line"}}}});
  table.add_row(cells("server", roles.server));
  for (std::size_t i = 0; i < roles.clients.size(); ++i) {
    table.add_row(cells(fmt::format("client {}", i), roles.clients[i]));
  }
  print_format(out, "{}", table.text(terminal_width(out)));
  // Further hosts with role=server have no role.
  if (const std::size_t idle = parsed.size() - std::min(parsed.size(), roles.clients.size() + 1); idle > 0) {
    print_format(out, "{} more hosts have role=server; they are not used, because a point has one server\n", idle);
  }
  return 0;
}

}  // namespace

Action add_hosts(CLI::App& command) {
  command.description("show the hosts of a hosts file and their roles");
  command.footer("Example:\n  verbscope hosts hosts.txt");
  auto hosts = std::make_shared<std::string>();
  command
      .add_option("hosts", *hosts, "a hosts file, host names (node1,node2), localhost, or slurm for this allocation")
      ->required();
  return [hosts] { return show_hosts(*hosts, stdout); };
}

}  // namespace verbscope
