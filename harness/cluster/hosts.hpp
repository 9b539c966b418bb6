// The hosts file: a host a line, or several with commas: `[user@]host[:ssh port] key=value ...`, `#` begins a comment,
// ranges as in node[01-16,20].
// docs/clusters.md has the keys.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace verbscope {

enum class HostRole { any, server, client };

struct Host {
  std::string name;
  std::string user;        // empty: the caller
  std::string device;      // empty: the benchmark's choice
  int ib_port = 0;         // 0: the benchmark's choice
  int gid_index = -1;      // -1: the benchmark's choice
  std::string address;     // clients reach the host here; empty: by its name
  std::string management;  // a launcher reaches the host here; empty: by its name
  int ssh_port = 0;        // 0: ssh's choice
  std::string cores;       // the benchmark's threads run on "0-3,8"; empty: the benchmark chooses
  int numa_node = -1;      // whose cores the threads get; -1: the benchmark's choice
  HostRole role = HostRole::any;
  int line = 0;  // 0: from no file

  const std::string& data_address() const { return address.empty() ? name : address; }
  const std::string& management_address() const { return management.empty() ? name : management; }
};

// Throws one line "where:LINE: ..." for bad syntax, an unknown key, a name no host can have, or no host at all.
std::vector<Host> parse_hosts(std::string_view text, const std::string& where);

// The hosts file of one line that needs no file.
inline constexpr std::string_view kThisMachine = "localhost";

// True for hosts with commas between them or in a range, "node1,me@node[2-4]", that are not the name of a file.
bool is_host_list(const std::string& hosts);

// "slurm": the hosts of this allocation; "localhost": this machine; a list of hosts; else the path of a hosts file.
// Throws as parse_hosts and slurm_hosts do.
std::vector<Host> read_hosts(const std::string& hosts);

// The hosts of a Slurm allocation, from the value of SLURM_JOB_NODELIST (null: not set). Throws when there is none.
std::vector<Host> slurm_hosts(const char* job_node_list);

std::string to_string(HostRole role);

// The name means this machine: localhost, a loopback address, or its hostname.
bool is_this_machine(const std::string& name);

// Who plays which role: the first host with role=server, else the first host that may be one; the others are clients,
// and with a single host it is its own client. Throws when no host may be the server or the client.
struct Cast {
  Host server;
  std::vector<Host> clients;

  std::vector<Host> all() const;  // the server first
};
Cast cast_roles(const std::vector<Host>& hosts, const std::string& where);

}  // namespace verbscope
