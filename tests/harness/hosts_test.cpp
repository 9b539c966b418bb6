// Parsing of hosts files, and their error messages.
#include "harness/cluster/hosts.hpp"

#include <unistd.h>

#include "harness/cluster/host_range.hpp"
#include "tests/harness/fakes.hpp"

namespace verbscope {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

std::string error_in(const std::string& text) {
  return error_of([&] { parse_hosts(text, "h"); });
}

std::vector<std::string> names(const std::string& pattern) {
  return expand_host_range(pattern, "h:1");
}

TEST(Hosts, ReadsUsersKeysAndComments) {
  const auto hosts = parse_hosts(
      "# machines\n\n me@alpha device=mlx5_0:2 gid_index=3 role=server address=10.0.0.1 # fast\r\nbeta\n", "h");
  ASSERT_EQ(hosts.size(), 2u);
  EXPECT_EQ(hosts[0].user, "me");
  EXPECT_EQ(hosts[0].name, "alpha");
  EXPECT_EQ(hosts[0].device, "mlx5_0");
  EXPECT_EQ(hosts[0].ib_port, 2);
  EXPECT_EQ(hosts[0].gid_index, 3);
  EXPECT_EQ(hosts[0].role, HostRole::server);
  EXPECT_EQ(hosts[0].address, "10.0.0.1");
  EXPECT_EQ(hosts[0].line, 3);
  EXPECT_EQ(hosts[1].name, "beta");
  EXPECT_EQ(hosts[1].role, HostRole::any);
  EXPECT_EQ(hosts[1].gid_index, -1);
}

TEST(Hosts, RangesKeepLeadingZeros) {
  EXPECT_EQ(names("node[08-10,20]"), (std::vector<std::string>{"node08", "node09", "node10", "node20"}));
  EXPECT_EQ(names("r[1-2]n[1-2].lan"), (std::vector<std::string>{"r1n1.lan", "r1n2.lan", "r2n1.lan", "r2n2.lan"}));
  EXPECT_EQ(names("n[0-8/4,9]"), (std::vector<std::string>{"n0", "n4", "n8", "n9"}));
  EXPECT_EQ(names("n[01-06:2]-ib0"), (std::vector<std::string>{"n01-ib0", "n03-ib0", "n05-ib0"}));
  EXPECT_EQ(names("plain"), (std::vector<std::string>{"plain"}));
}

TEST(Hosts, ReadsAListOfHostsWithoutAFile) {
  const auto hosts = read_hosts("alpha,me@n[1,3],10.0.0.7");
  ASSERT_EQ(hosts.size(), 4u);
  EXPECT_EQ(hosts[0].name, "alpha");
  EXPECT_EQ(hosts[1].name, "n1");
  EXPECT_EQ(hosts[2].name, "n3");
  EXPECT_EQ(hosts[2].user, "me");
  EXPECT_EQ(hosts[3].name, "10.0.0.7");
  for (const char* wrong : {"a,", ",a", "a,,b", "a,n[2-1]", "a,b;c"}) {
    EXPECT_THAT(error_of([&] { read_hosts(wrong); }), StartsWith("--hosts")) << wrong;
  }
}

TEST(Hosts, MinusExcludesHostsFromAList) {
  std::vector<std::string> found;
  for (const Host& host : read_hosts("n[1-4],-n[2-3],x")) found.push_back(host.name);
  EXPECT_EQ(found, (std::vector<std::string>{"n1", "n4", "x"}));
  EXPECT_THAT(error_of([] { read_hosts("n[1-4],-n7"); }), HasSubstr("\"n7\" is excluded but is not"));
}

// Files in the formats of Open MPI, MPICH, pdsh and Slurm, and with typical mistakes: their hosts, or a part of the
// error.
TEST(Hosts, ReadsFilesOfOtherToolsOrReportsTheRemedy) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"bom_crlf", "node1 node2"},
      {"brace", "brackets: \"node[1,2]\""},
      {"comma", "node1 node2 node3"},
      {"cores", "expected cores as 0-3,8"},
      {"gids", "host-a host-b"},
      {"ipport", "192.0.2.1:2222 192.0.2.2:2222"},
      {"iprange", "192.0.2.1 192.0.2.2 192.0.2.3 192.0.2.4"},
      {"ipv6", "2001:db8::1 2001:db8::2"},
      {"ipv6_brackets", "2001:db8::1 2001:db8::2"},
      {"l2", "MPICH"},
      {"linklocal", "fe80::1%eth0 fe80::2%eth0"},
      {"lo_port", "127.0.0.1:22"},
      {"mpich", "\":8\" is a number of processes in MPICH files"},
      {"multidev", "several devices"},
      {"nccl243", "root@node1 localhost"},
      {"openmpi", "node1 node2"},
      {"ssh_port", "root@localhost:22"},
      {"sshport", "root@192.0.2.1:22"},
      {"suffix", "node01-ib0 node02-ib0 node03-ib0 node04-ib0"},
      {"two_ranges", "rack0_blade0 rack0_blade1 rack1_blade0 rack1_blade1"},
      {"ucx7785", "mu01 cu01"}};
  for (const auto& [name, expected] : cases) {
    std::string found;
    try {
      for (const Host& host : read_hosts(VERBSCOPE_SOURCE_DIR "/tests/harness/hosts_files/" + name + ".txt")) {
        found += (found.empty() ? "" : " ") + (host.user.empty() ? "" : host.user + "@") + host.name +
                 (host.ssh_port == 0 ? "" : ":" + std::to_string(host.ssh_port));
      }
    } catch (const Error& error) {
      found = error.what();
    }
    if (found.find(": ") == found.npos) {
      EXPECT_EQ(found, expected) << name;
    } else {
      EXPECT_THAT(found, HasSubstr(expected)) << name;
    }
  }
}

TEST(Hosts, ReadsBracketsZonesAndPortsOfAddresses) {
  const auto one = [](const std::string& line) { return parse_hosts(line, "h").at(0); };
  EXPECT_EQ(one("[2001:db8::1]:2222").name, "2001:db8::1");
  EXPECT_EQ(one("[2001:db8::1]:2222").ssh_port, 2222);
  EXPECT_EQ(one("me@[fe80::1%eth0]").name, "fe80::1%eth0");
  EXPECT_EQ(one("a:2222 ssh_port=2222").ssh_port, 2222);
  EXPECT_EQ(parse_hosts("n[1-2]:22", "h").at(1).ssh_port, 22);
  for (const char* wrong :
       {"[2001:db8::1", "[x]", "[::1]x", "[::1]:", "a:", "a:70000", "a:2222 ssh_port=22", "1:2:3", "fe80::1%a;b"})
    EXPECT_THAT(error_in(wrong), StartsWith("h:1: ")) << wrong;
}

// Memory and recursion are bounded for any text.
TEST(Hosts, RejectsTooManyBrackets) {
  std::string groups = "n";
  for (int i = 0; i < 200'000; ++i) groups += "[1]";
  EXPECT_THAT(error_in(groups), HasSubstr("more than 8 pairs of brackets"));
  EXPECT_THAT(error_of([&] { slurm_hosts(groups.c_str()); }), HasSubstr("more than 8 pairs of brackets"));
  EXPECT_THAT(error_in("n[0-4095][0-4095][0-4095][0-4095]"), HasSubstr("more than 4096 hosts"));
  EXPECT_EQ(parse_hosts("n[0-15][0-15][0-15]", "h").size(), 4096u);
}

TEST(Hosts, RejectsARepeatedKey) {
  EXPECT_THAT(error_in("a role=server device=mlx5_0 role=client"), AllOf(HasSubstr("h:1"), HasSubstr("\"role\"")));
}

TEST(Hosts, HostsOfARangeShareTheKeys) {
  const auto hosts = parse_hosts("n[1-3] role=client", "h");
  ASSERT_EQ(hosts.size(), 3u);
  EXPECT_EQ(hosts[2].name, "n3");
  EXPECT_EQ(hosts[2].role, HostRole::client);
}

TEST(Hosts, ErrorsNameTheLine) {
  EXPECT_EQ(error_in("# nothing\n"), "h: contains no host");
  EXPECT_EQ(error_in("a\nb device"), R"(h:2: expected key=value after the host, got "device")");
  EXPECT_EQ(
      error_in("a colour=red"),
      R"(h:1: unknown key "colour", allowed: device, gid_index, role, address, management, ssh_port, cores, numa_node)");
  EXPECT_EQ(error_in("a role=king"), R"(h:1: role: expected server, client or any, got "king")");
  EXPECT_EQ(error_in("a gid_index=x"), R"(h:1: gid_index: expected a number from -1 to 65535, got "x")");
  EXPECT_EQ(error_in("a device=mlx5_0:0"), R"(h:1: device: expected a number from 1 to 255, got "0")");
  EXPECT_THAT(error_in("n[1-"), AllOf(HasSubstr("h:1"), HasSubstr(R"("n[1-")"), HasSubstr("brackets")));
  EXPECT_THAT(error_in("n]1["), AllOf(HasSubstr("h:1"), HasSubstr(R"("n]1[")"), HasSubstr("brackets")));
  EXPECT_THAT(error_in("n[3-1]"), AllOf(HasSubstr("h:1"), HasSubstr(R"("n[3-1]")"), HasSubstr("descending")));
  EXPECT_EQ(error_in("n[]"), R"(h:1: range "n[]": expected a number from 0 to 99999999, got "")");
  EXPECT_EQ(error_in("n[1-99999]"), R"(h:1: range "n[1-99999]": more than 4096 hosts)");
  EXPECT_EQ(error_in("n[1-99][1-99]"), R"(h:1: range "n[1-99][1-99]": more than 4096 hosts)");
}

TEST(Hosts, ReadsManagementAddressPortAndCores) {
  const auto hosts =
      parse_hosts("a management=10.1.0.1 ssh_port=2222 cores=0-3,8\nb numa_node=1 address=10.9.0.2\n", "h");
  EXPECT_EQ(hosts[0].management_address(), "10.1.0.1");
  EXPECT_EQ(hosts[0].data_address(), "a");
  EXPECT_EQ(hosts[0].ssh_port, 2222);
  EXPECT_EQ(hosts[0].cores, "0-3,8");
  EXPECT_EQ(hosts[1].management_address(), "b");
  EXPECT_EQ(hosts[1].data_address(), "10.9.0.2");
  EXPECT_EQ(hosts[1].numa_node, 1);
  for (const char* cores : {"", "a", "1,", "-1", "1--2", "0;id"}) {
    EXPECT_THAT(error_in(std::string("a cores=") + cores), StartsWith("h:1: cores: expected cores as 0-3,8"));
  }
  EXPECT_EQ(error_in("a ssh_port=0"), R"(h:1: ssh_port: expected a number from 1 to 65535, got "0")");
  EXPECT_THAT(error_in("a cores=1 numa_node=0"), AllOf(HasSubstr("h:1"), HasSubstr("cores"), HasSubstr("numa_node")));
}

TEST(Hosts, ReadsASlurmNodeListLikeScontrol) {
  const auto hosts = slurm_hosts("node[01-02,10],login,r[1-2]n3");
  std::vector<std::string> found;
  for (const Host& host : hosts) found.push_back(host.name);
  EXPECT_EQ(found, (std::vector<std::string>{"node01", "node02", "node10", "login", "r1n3", "r2n3"}));
  EXPECT_THAT(error_of([] { slurm_hosts(nullptr); }), HasSubstr("SLURM_JOB_NODELIST is not set"));
  EXPECT_THAT(error_of([] { slurm_hosts("a,,b"); }), AllOf(HasSubstr("SLURM_JOB_NODELIST"), HasSubstr("empty name")));
  EXPECT_THAT(error_of([] { slurm_hosts("a,-b"); }), HasSubstr("is not a host name"));
}

TEST(Hosts, RejectsNamesThatCouldBeOptionsOrCommands) {
  for (const char* name :
       {"-oProxyCommand=x", "a;b", "$(id)", "`id`", "a'b", "a\"b", "a|b", "x@-l", "@a", "a/b", "a\x01"}) {
    EXPECT_THAT(error_in(name), HasSubstr("h:1: ")) << name;
  }
  EXPECT_THAT(error_in("a address=-x"), HasSubstr("is not an address"));
  EXPECT_THAT(error_in("a device=../x"), HasSubstr("is not a device name"));
}

TEST(Hosts, AssignsRoles) {
  const RoleAssignment roles = assign_roles(parse_hosts("a\nb\nc role=server\nd role=client", "h"), "h");
  EXPECT_EQ(roles.server.name, "c");
  ASSERT_EQ(roles.clients.size(), 3u);
  EXPECT_EQ(roles.clients[0].name, "a");
  EXPECT_EQ(roles.clients[2].name, "d");
}

TEST(Hosts, ASingleHostIsServerAndClient) {
  const RoleAssignment roles = assign_roles(parse_hosts("localhost", "h"), "h");
  EXPECT_EQ(roles.server.name, "localhost");
  ASSERT_EQ(roles.clients.size(), 1u);
  EXPECT_EQ(roles.clients[0].name, "localhost");
}

TEST(Hosts, RejectsARoleWithoutAHost) {
  EXPECT_EQ(error_of([] { assign_roles(parse_hosts("a role=client", "h"), "h"); }),
            "h: no host can be the server; set role=server or role=any on one host");
  EXPECT_EQ(error_of([] { assign_roles(parse_hosts("a role=server", "h"), "h"); }),
            "h: no host can be the client; set role=client or role=any on one host");
}

TEST(Hosts, RecognizesTheNamesOfThisMachine) {
  char hostname[256] = {};
  ASSERT_EQ(gethostname(hostname, sizeof hostname - 1), 0);
  EXPECT_TRUE(is_this_machine("localhost"));
  EXPECT_TRUE(is_this_machine("127.0.0.1"));
  EXPECT_TRUE(is_this_machine(hostname));
  EXPECT_FALSE(is_this_machine("some-other-machine.example"));
}

}  // namespace
}  // namespace verbscope
