// The hosts file: one host per line, or several with commas: `[user@]host[:ssh port] key=value ...`. `#` begins a
// comment. Ranges such as node[01-16,20] are expanded. docs/clusters.md describes the keys.
#pragma once

#include <filesystem>
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
  std::string address;     // data address for clients; empty: its name
  std::string management;  // address for launchers; empty: its name
  int ssh_port = 0;        // 0: ssh's default
  std::string cores;       // cores for the benchmark's threads, "0-3,8"; empty: the benchmark chooses
  int numa_node = -1;      // NUMA node whose cores the threads use; -1: the benchmark chooses
  HostRole role = HostRole::any;
  int line = 0;  // line in the file; 0: not from a file

  const std::string& data_address() const { return address.empty() ? name : address; }
  const std::string& management_address() const { return management.empty() ? name : management; }
};

// Throws one line "where:LINE: ..." for bad syntax, an unknown key, an invalid host name, or no host at all.
std::vector<Host> parse_hosts(std::string_view text, const std::string& where);

// Stands for this machine in place of a hosts file.
inline constexpr std::string_view kThisMachine = "localhost";

// True for a list or range, "node1,me@node[2-4]", that is not the name of a file.
bool is_host_list(const std::string& hosts);

// "slurm": the hosts of this allocation; "localhost": this machine; a list of hosts; else the path of a hosts file.
// Throws as parse_hosts and slurm_hosts do.
std::vector<Host> read_hosts(const std::string& hosts);

// The hosts of a Slurm allocation. `job_node_list`: the value of SLURM_JOB_NODELIST, null if not set. Throws if there
// is none.
std::vector<Host> slurm_hosts(const char* job_node_list);

std::string to_string(HostRole role);

// True for localhost, a loopback address, and this machine's hostname.
bool is_this_machine(const std::string& name);

// Assigns roles. The server is the first host with role=server, else the first host that may be one. The others are
// clients; a single host is also its own client. Throws if no host may be the server or a client.
struct RoleAssignment {
  Host server;
  std::vector<Host> clients;

  std::vector<Host> all() const;  // the server first
};
RoleAssignment assign_roles(const std::vector<Host>& hosts, const std::string& where);

// The cores of a NUMA node of this machine in Linux's format, "0-13,28-41". `root` contains /sys. Throws if the node
// does not exist or has no core.
std::string cores_of_node(int node, const std::filesystem::path& root = "/");

}  // namespace verbscope
