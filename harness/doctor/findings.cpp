#include "harness/doctor/findings.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "harness/doctor/fact_reader.hpp"
#include "harness/doctor/link_findings.hpp"

namespace verbscope {
namespace {

// Enough for the pinned buffers, queues and CQs of a run with thousands of QPs. The usual default, 8 MiB or less, is
// not.
constexpr double kEnoughMemlock = 64 << 20;

// "0-3,8" as a set. Stops at the first syntax error and returns the cores read so far.
std::set<int> core_set(const std::string& list) {
  std::set<int> cores;
  const char* at = list.data();
  const char* const end = at + list.size();
  while (at < end) {
    int first = 0;
    auto [next, error] = std::from_chars(at, end, first);
    if (error != std::errc()) return cores;
    int last = first;
    if (next < end && *next == '-') next = std::from_chars(next + 1, end, last).ptr;
    for (int core = first; core <= last && core - first < 4096; ++core) cores.insert(core);
    at = next < end ? next + 1 : end;
  }
  return cores;
}

void judge_cpu(const Json& facts, std::vector<Finding>& out) {
  if (fact_at(facts, "virtual_machine") == true) {
    out.push_back(
        {"this is a virtual machine: its rates are not those of the hardware", "measure on the bare machine"});
  }
  for (const Json& governor : fact_list(facts, "governors")) {
    if (governor == "performance") continue;
    out.push_back({fmt::format("cores: governor {}, not performance", fact_text(governor)),
                   "as root: cpupower frequency-set -g performance"});
  }
  if (fact_at(facts, "turbo") == true) {
    out.push_back({"turbo is on: the clock follows temperature and load",
                   "as root: echo 1 > /sys/devices/system/cpu/intel_pstate/no_turbo, or 0 > .../cpu/cpufreq/boost"});
  }
  const std::string clock = fact_text(fact_at(facts, "clock_source"));
  if (!clock.empty() && clock != "tsc") {
    out.push_back({fmt::format("clock source {}, not tsc: the kernel does not trust the time stamp counter", clock),
                   "see why in dmesg; on a machine known to be good, boot with tsc=reliable"});
  }
}

void judge_memory(const Json& facts, std::vector<Finding>& out) {
  const Json& memlock = fact_at(facts, "memlock_bytes");
  if (memlock.is_number() && memlock.get<double>() < kEnoughMemlock) {
    out.push_back({fmt::format("locked memory is limited to {} KiB", memlock.get<long long>() / 1024),
                   "ulimit -l unlimited; for logins by ssh, memlock in /etc/security/limits.conf"});
  }
  for (const Json& pages : fact_list(facts, "huge_pages")) {
    const Json& total = fact_at(pages, "total");
    if (total.is_number() && total.get<double>() > 0) return;
  }
  out.push_back({"no huge pages are set aside: large regions miss in the NIC's translation cache",
                 "as root: sysctl vm.nr_hugepages=1024"});
}

// The name of a port's network device for use in a command; "DEVICE" if unknown.
std::string netdev_name(const Json& port) {
  const std::string name = fact_text(fact_at(port, "netdev"));
  return name.empty() ? "DEVICE" : name;
}

void judge_port(const std::string& name, const Json& port, std::vector<Finding>& out) {
  const std::string state = fact_text(fact_at(port, "state"));
  const std::string link_layer = fact_text(fact_at(port, "link_layer"));
  if (state != "ACTIVE") {
    out.push_back({fmt::format("{}: state {}, not ACTIVE", name, state.empty() ? "not known" : state),
                   link_layer == "InfiniBand" ? "the cable; a subnet manager (opensm)"
                                              : fmt::format("the cable; ip link set {} up", netdev_name(port))});
  }
  if (link_layer != "Ethernet") return;
  const Json& mtu = fact_at(port, "mtu_bytes");
  if (mtu.is_number() && mtu.get<double>() < 4096) {
    out.push_back({fmt::format("{}: path MTU at most {} bytes, for {} has {}", name, mtu.get<long long>(),
                               netdev_name(port), fact_text(fact_at(port, "netdev_mtu_bytes"))),
                   fmt::format("on every machine and switch: ip link set {} mtu 4200", netdev_name(port))});
  }
  if (fact_list(port, "gids").empty()) out.push_back({name + ": no GID", "an IP address for " + netdev_name(port)});
}

// The cores of a NUMA node; empty if unknown.
std::set<int> cores_of_node(const Json& facts, long long number) {
  for (const Json& each : fact_list(facts, "numa_nodes")) {
    if (fact_text(fact_at(each, "node")) == std::to_string(number)) return core_set(fact_text(fact_at(each, "cores")));
  }
  return {};
}

// The first two cores of a run without --cores: the allowed cores in order (docs/benchmarks.md, --cores).
std::vector<int> default_cores(const Json& facts) {
  std::set<int> all = core_set(fact_text(fact_at(facts, "allowed_cores")));
  if (all.empty()) {
    for (const Json& each : fact_list(facts, "numa_nodes")) all.merge(core_set(fact_text(fact_at(each, "cores"))));
  }
  std::vector<int> first(all.begin(), all.end());
  first.resize(std::min<std::size_t>(first.size(), 2));
  return first;
}

void judge_placement(const Json& facts, const Json& device, const Wanted& wanted, std::vector<Finding>& out) {
  const Json& node = fact_at(device, "numa_node");
  if (!node.is_number()) return;
  const auto number = node.get<long long>();
  const std::string name = fact_text(fact_at(device, "name"));
  const std::string todo = fmt::format("numa_node={} in the hosts file", number);
  if (wanted.numa_node >= 0) {
    if (wanted.numa_node == number) return;
    out.push_back(
        {fmt::format("the threads are to run on NUMA node {}, {} is on node {}", wanted.numa_node, name, number),
         todo});
    return;
  }
  const std::set<int> near = cores_of_node(facts, number);
  const auto is_far = [&near](int core) { return !near.contains(core); };
  if (near.empty()) return;
  if (!wanted.cores.empty()) {
    const std::set<int> cores = core_set(wanted.cores);
    const auto far = std::ranges::find_if(cores, is_far);
    if (far == cores.end()) return;
    out.push_back({fmt::format("core {} is not on NUMA node {}, where {} is", *far, number, name), todo});
    return;
  }
  const std::vector<int> cores = default_cores(facts);
  const auto far = std::ranges::find_if(cores, is_far);
  if (far == cores.end()) return;
  out.push_back({fmt::format("threads run on cores {}, ... by default: core {} is not on NUMA node {}, where {} is",
                             fmt::join(cores, ", "), *far, number, name),
                 todo + ", or --cores"});
}

bool wants(const Wanted& wanted, const Json& device) {
  return wanted.device.empty() || fact_text(fact_at(device, "name")) == wanted.device;
}

void judge_device(const Json& device, const Wanted& wanted, std::vector<Finding>& out) {
  const std::string name = fact_text(fact_at(device, "name"));
  const bool software = fact_at(device, "software") == true;
  if (software) {
    out.push_back({name + " is made of software: its rates say nothing about an RDMA NIC", "a device of hardware"});
  } else {
    judge_pcie(device, out);
  }
  const std::string iommu = fact_text(fact_at(device, "iommu"));
  if (iommu.starts_with("DMA")) {
    out.push_back({name + ": the IOMMU translates its DMA", "boot with iommu=pt"});
  }
  for (const Json& port : fact_list(device, "ports")) {
    const std::string number = fact_text(fact_at(port, "port"));
    if (wanted.ib_port != 0 && std::to_string(wanted.ib_port) != number) continue;
    judge_port(name + ":" + number, port, out);
    if (!software) judge_link(name + ":" + number, port, out);
  }
}

}  // namespace

std::vector<Finding> judge_host(const Json& facts, const Wanted& wanted) {
  std::vector<Finding> out;
  std::vector<Json> devices;
  for (const Json& device : fact_list(facts, "devices")) {
    if (wants(wanted, device)) devices.push_back(device);
  }
  if (devices.empty()) {
    out.push_back({wanted.device.empty() ? "no RDMA device" : "no RDMA device " + wanted.device,
                   "the driver (modprobe mlx5_ib), or another device= in the hosts file"});
  }
  for (const Json& device : devices) judge_device(device, wanted, out);
  judge_slots(devices, wanted.ib_port, out);
  // A run without --device uses the first device.
  if (!devices.empty()) judge_placement(facts, devices.front(), wanted, out);
  judge_cpu(facts, out);
  judge_memory(facts, out);
  return out;
}

}  // namespace verbscope
