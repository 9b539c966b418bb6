#include "harness/cluster/hosts.hpp"

#include <arpa/inet.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <filesystem>

#include "common/error.hpp"
#include "common/files.hpp"
#include "harness/cluster/host_range.hpp"

namespace verbscope {
namespace {

constexpr std::string_view kBlanks = " \t\r";

// An IPv6 address, optionally with a zone: "fe80::1%eth0".
bool is_ipv6(std::string_view name) {
  const std::size_t zone = name.find('%');
  if (zone != std::string_view::npos && !is_plain(name.substr(zone + 1), "._-")) return false;
  in6_addr ignored;
  return inet_pton(AF_INET6, std::string(name.substr(0, zone)).c_str(), &ignored) == 1;
}

void set_device(Host& host, std::string_view value, const std::string& what) {
  const std::size_t colon = value.find(':');
  host.device = value.substr(0, colon);
  if (host.device.find(',') != std::string::npos) {
    fail("{}: {} names several devices; give one device per line", what, in_quotes(host.device));
  }
  if (!is_plain(host.device, "._-")) fail("{}: {} is not a device name", what, in_quotes(host.device));
  if (colon != std::string_view::npos) host.ib_port = parse_number(value.substr(colon + 1), 1, 255, what);
}

// True for a list such as "0-3,8".
bool is_core_list(std::string_view text) {
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  if (text.empty() || text.size() > 255 || !digit(text.front()) || !digit(text.back())) return false;
  for (std::size_t i = 1; i < text.size(); ++i) {
    if (!digit(text[i]) && ((text[i] != ',' && text[i] != '-') || !digit(text[i - 1]))) return false;
  }
  return true;
}

HostRole parse_role(std::string_view value, const std::string& what) {
  if (value == "any") return HostRole::any;
  if (value == "server") return HostRole::server;
  if (value == "client") return HostRole::client;
  fail("{}: expected server, client or any, got {}", what, in_quotes(value));
}

void set_key(Host& host, std::string_view word, const std::string& where) {
  const std::size_t equals = word.find('=');
  if (equals == std::string_view::npos) fail("{}: expected key=value after the host, got {}", where, in_quotes(word));
  const std::string_view key = word.substr(0, equals);
  const std::string_view value = word.substr(equals + 1);
  const std::string what = fmt::format("{}: {}", where, key);
  if (key == "device") {
    set_device(host, value, what);
  } else if (key == "gid_index") {
    host.gid_index = parse_number(value, -1, 65535, what);
  } else if (key == "role") {
    host.role = parse_role(value, what);
  } else if (key == "address" || key == "management") {
    if (!is_plain(value, "._-") && !is_ipv6(value)) fail("{}: {} is not an address", what, in_quotes(value));
    (key == "address" ? host.address : host.management) = value;
  } else if (key == "ssh_port") {
    host.ssh_port = parse_number(value, 1, 65535, what);
  } else if (key == "cores") {
    if (!is_core_list(value)) fail("{}: expected cores as 0-3,8, got {}", what, in_quotes(value));
    host.cores = value;
  } else if (key == "numa_node") {
    host.numa_node = parse_number(value, 0, 1023, what);
  } else if (key == "slots" || key == "max_slots" || key == "max-slots") {  // Open MPI's number of processes: ignored
    parse_number(value, 0, 1'000'000, what);
  } else {
    fail("{}: unknown key {}, allowed: device, gid_index, role, address, management, ssh_port, cores, numa_node", where,
         in_quotes(key));
  }
}

std::vector<std::string_view> split_words(std::string_view line) {
  line = line.substr(0, line.find('#'));
  std::vector<std::string_view> words;
  while (true) {
    const std::size_t start = line.find_first_not_of(kBlanks);
    if (start == std::string_view::npos) return words;
    const std::size_t end = std::min(line.find_first_of(kBlanks, start), line.size());
    words.push_back(line.substr(start, end - start));
    line.remove_prefix(end);
  }
}

// Sets ssh's port from "host:2222". In MPICH's files the number is a count of processes.
void set_ssh_port(Host& host, std::string_view port, const std::string& where, std::string_view name) {
  constexpr int kSsh = 22, kFirstUnprivileged = 1024;
  const int number = parse_number(port, 1, 65535, fmt::format("{}: {}: ssh's port", where, in_quotes(name)));
  if (number != kSsh && number < kFirstUnprivileged) {
    fail(
        "{}: {}: \":{}\" is a number of processes in MPICH files and is not used here; remove it, or write "
        "ssh_port={} if it is the port of ssh",
        where, in_quotes(name), number, number);
  }
  if (host.ssh_port != 0 && host.ssh_port != number) {
    fail("{}: {}: conflicts with ssh_port={}", where, in_quotes(name), host.ssh_port);
  }
  host.ssh_port = number;
}

// "name", "name:port", "[IPv6]", "[IPv6]:port" or "IPv6".
Host parse_name(Host host, std::string_view name, const std::string& where) {
  std::string_view bare = name, port;
  if (name.starts_with('[')) {
    const std::size_t close = name.find(']');
    bare = name.substr(1, close - 1);
    port = name.substr(std::min(close + 1, name.size()));
    if (!is_ipv6(bare) || (!port.empty() && !port.starts_with(':'))) {
      fail("{}: {} is not an IPv6 address in brackets", where, in_quotes(name));
    }
    if (!port.empty()) port.remove_prefix(1);
    if (port.empty() && name.ends_with(':')) fail("{}: {}: no port after the colon", where, in_quotes(name));
  } else if (std::ranges::count(name, ':') == 1) {
    bare = name.substr(0, name.find(':'));
    port = name.substr(bare.size() + 1);
    if (port.empty()) fail("{}: {}: no port after the colon", where, in_quotes(name));
  }
  if (!is_plain(bare, "._-") && !is_ipv6(bare)) fail("{}: {} is not a host name", where, in_quotes(name));
  if (!port.empty()) set_ssh_port(host, port, where, name);
  host.name = bare;
  return host;
}

// Expands the ranges of a pattern. The brackets of an IPv6 address are not a range.
std::vector<std::string> expand(std::string_view pattern, const std::string& where) {
  const std::size_t close = pattern.find(']');
  const std::string_view inner = pattern.substr(0, close).substr(pattern.starts_with('[') ? 1 : 0);
  if (pattern.starts_with('[') && close != std::string_view::npos && inner.find(':') != std::string_view::npos &&
      pattern.find('[', 1) == std::string_view::npos) {
    return {std::string(pattern)};
  }
  return expand_host_range(pattern, where);
}

// Adds the hosts of a list, "me@a[1-4],b,-a2". A pattern after '-' removes names, as in pdsh. The hosts get the keys of
// `like`.
void add_list(std::string_view list, const Host& like, const std::string& where, std::vector<Host>& hosts) {
  const std::size_t before = hosts.size();
  for (std::string_view rest : split_host_list(list, where)) {
    const bool removes = rest.starts_with('-') && hosts.size() > before;
    Host host = like;
    if (removes) rest.remove_prefix(1);
    if (const std::size_t at = rest.find('@'); at != std::string_view::npos) {
      host.user = rest.substr(0, at);
      rest.remove_prefix(at + 1);
      if (!is_plain(host.user, "._-")) fail("{}: {} is not a user name", where, in_quotes(host.user));
    }
    for (const std::string& name : expand(rest, where)) {
      Host each = parse_name(host, name, where);
      if (removes) {
        const auto same = [&each](const Host& other) { return other.name == each.name; };
        const auto gone = std::remove_if(hosts.begin() + static_cast<std::ptrdiff_t>(before), hosts.end(), same);
        if (gone == hosts.end()) fail("{}: {} is excluded but is not in the list", where, in_quotes(name));
        hosts.erase(gone, hosts.end());
        continue;
      }
      if (hosts.size() == kMaxHosts) fail("{}: more than {} hosts", where, kMaxHosts);
      hosts.push_back(std::move(each));
    }
  }
}

void parse_line(std::string_view line, int number, const std::string& where, std::vector<Host>& hosts) {
  const std::vector<std::string_view> words = split_words(line);
  if (words.empty()) return;
  Host host;
  host.line = number;
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string_view key = words[i].substr(0, words[i].find('='));
    for (std::size_t k = 1; k < i; ++k) {
      if (words[k].substr(0, words[k].find('=')) == key) fail("{}: {} is given more than once", where, in_quotes(key));
    }
    set_key(host, words[i], where);
  }
  if (!host.cores.empty() && host.numa_node >= 0) fail("{}: give either cores or numa_node, not both", where);
  add_list(words[0], host, where, hosts);
}

}  // namespace

std::vector<Host> read_hosts(const std::string& hosts) {
  if (hosts == kThisMachine) return parse_hosts(kThisMachine, hosts);
  if (hosts == "slurm") return slurm_hosts(std::getenv("SLURM_JOB_NODELIST"));
  if (!is_host_list(hosts)) return parse_hosts(read_text_file(hosts), hosts);
  std::vector<Host> out;
  add_list(hosts, {}, "--hosts", out);
  if (out.empty()) fail("--hosts: {} contains no host", in_quotes(hosts));
  return out;
}

bool is_host_list(const std::string& hosts) {
  std::error_code ignored;
  return hosts.find_first_of(",[") != std::string::npos && !std::filesystem::exists(hosts, ignored);
}

std::vector<Host> parse_hosts(std::string_view text, const std::string& where) {
  std::vector<Host> hosts;
  int number = 0;
  while (!text.empty()) {
    ++number;
    const std::size_t end = std::min(text.find('\n'), text.size());
    parse_line(text.substr(0, end), number, fmt::format("{}:{}", where, number), hosts);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  if (hosts.empty()) fail("{}: contains no host", where);
  return hosts;
}

std::vector<Host> slurm_hosts(const char* job_node_list) {
  const std::string where = "SLURM_JOB_NODELIST";
  if (job_node_list == nullptr) fail("{} is not set: not inside a Slurm allocation", where);
  std::vector<Host> hosts;
  for (const std::string& pattern : split_host_list(job_node_list, where)) {
    for (std::string& name : expand_host_range(pattern, where)) {
      if (!is_plain(name, "._-")) fail("{}: {} is not a host name", where, in_quotes(name));
      if (hosts.size() == kMaxHosts) fail("{}: more than {} hosts", where, kMaxHosts);
      hosts.emplace_back().name = std::move(name);
    }
  }
  return hosts;
}

std::string to_string(HostRole role) {
  return role == HostRole::server ? "server" : role == HostRole::client ? "client" : "any";
}

bool is_this_machine(const std::string& name) {
  if (name == "localhost" || name == "::1" || name.starts_with("127.")) return true;
  char hostname[HOST_NAME_MAX + 1] = {};
  if (gethostname(hostname, sizeof hostname - 1) != 0) return false;
  const std::string full = hostname;
  return name == full || name == full.substr(0, full.find('.'));
}

std::vector<Host> RoleAssignment::all() const {
  std::vector<Host> out{server};
  out.insert(out.end(), clients.begin(), clients.end());
  return out;
}

RoleAssignment assign_roles(const std::vector<Host>& hosts, const std::string& where) {
  auto server = std::ranges::find(hosts, HostRole::server, &Host::role);
  if (server == hosts.end()) server = std::ranges::find(hosts, HostRole::any, &Host::role);
  if (server == hosts.end()) fail("{}: no host can be the server; set role=server or role=any on one host", where);
  RoleAssignment roles{.server = *server, .clients = {}};
  for (auto host = hosts.begin(); host != hosts.end(); ++host) {
    if (host != server && host->role != HostRole::server) roles.clients.push_back(*host);
  }
  if (roles.clients.empty() && hosts.size() == 1 && server->role == HostRole::any) roles.clients.push_back(*server);
  if (roles.clients.empty()) fail("{}: no host can be the client; set role=client or role=any on one host", where);
  return roles;
}

std::string cores_of_node(int node, const std::filesystem::path& root) {
  const std::filesystem::path path = root / fmt::format("sys/devices/system/node/node{}/cpulist", node);
  if (!std::filesystem::exists(path)) fail("numa_node={}: this machine has no such node", node);
  std::string cores = read_text_file(path);
  cores.erase(cores.find_last_not_of(" \n") + 1);
  if (cores.empty()) fail("numa_node={}: the node has no cores", node);
  return cores;
}

}  // namespace verbscope
