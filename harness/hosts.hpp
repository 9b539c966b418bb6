// The hosts file: one host a line, `[user@]host key=value ...`, `#` begins a comment, ranges as in node[01-16,20].
// Keys: device=mlx5_0[:port], gid_index=N, role=server|client|any, address=where clients reach the server.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace verbscope {

enum class HostRole { any, server, client };

struct Host {
  std::string name;
  std::string user;     // empty: the caller
  std::string device;   // empty: the benchmark's choice
  int ib_port = 0;      // 0: the benchmark's choice
  int gid_index = -1;   // -1: the benchmark's choice
  std::string address;  // empty: the name
  HostRole role = HostRole::any;
  int line = 0;
};

// The most hosts that a file may name.
inline constexpr std::size_t kMaxHosts = 4096;

// Throws one line "where:LINE: ..." for bad syntax, an unknown key, a name no host can have, or no host at all.
std::vector<Host> parse_hosts(std::string_view text, const std::string& where);

std::vector<Host> read_hosts_file(const std::filesystem::path& path);

// "node[01-03,7]" gives node01 node02 node03 node7. Throws when brackets do not pair, a range runs backwards, or more
// than kMaxHosts come out.
std::vector<std::string> expand_host_range(const std::string& pattern, const std::string& where);

// The name means this machine: localhost, a loopback address, or its hostname.
bool is_this_machine(const std::string& name);

// Who plays which role: the first host with role=server, else the first host that may be one; the others are clients,
// and with a single host it is its own client. Throws when no host may be the server or the client.
struct Cast {
  Host server;
  std::vector<Host> clients;
};
Cast cast_roles(const std::vector<Host>& hosts, const std::string& where);

}  // namespace verbscope
