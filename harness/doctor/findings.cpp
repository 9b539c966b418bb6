#include "harness/doctor/findings.hpp"

#include <charconv>
#include <set>

#include "harness/doctor/fact_reader.hpp"

namespace verbscope {
namespace {

// Pinned buffers, queues and CQs of a run with thousands of QPs; the default of most systems, 8 MiB or less, is not
// enough.
constexpr double kEnoughMemlock = 64 << 20;

// "0-3,8" as a set. What is no list gives what was understood of it.
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

// The number at the beginning of "8.0 GT/s PCIe" or "16".
double leading_number(const Json& value) {
  const std::string text = fact_text(value);
  double number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
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

void judge_pcie(const std::string& name, const Json& pcie, std::vector<Finding>& out) {
  const std::string speed = fact_text(fact_at(pcie, "speed")), max_speed = fact_text(fact_at(pcie, "max_speed"));
  const std::string width = fact_text(fact_at(pcie, "width")), max_width = fact_text(fact_at(pcie, "max_width"));
  if (leading_number(fact_at(pcie, "speed")) >= leading_number(fact_at(pcie, "max_speed")) &&
      leading_number(fact_at(pcie, "width")) >= leading_number(fact_at(pcie, "max_width"))) {
    return;
  }
  out.push_back({fmt::format("{}: PCIe runs at {} x{}, the card can {} x{}", name, speed, width, max_speed, max_width),
                 "another slot, the card reseated, the slot's setting in the BIOS"});
}

void judge_port(const std::string& name, const Json& port, std::vector<Finding>& out) {
  const std::string state = fact_text(fact_at(port, "state"));
  const std::string link_layer = fact_text(fact_at(port, "link_layer"));
  if (state != "ACTIVE") {
    out.push_back({fmt::format("{}: state {}, not ACTIVE", name, state), link_layer == "InfiniBand"
                                                                             ? "the cable; a subnet manager (opensm)"
                                                                             : "the cable; ip link set DEVICE up"});
  }
  if (link_layer != "Ethernet") return;
  const Json& mtu = fact_at(port, "mtu_bytes");
  if (mtu.is_number() && mtu.get<double>() < 4096) {
    out.push_back({fmt::format("{}: path MTU at most {} bytes, for {} has {}", name, mtu.get<long long>(),
                               fact_text(fact_at(port, "netdev")), fact_text(fact_at(port, "netdev_mtu_bytes"))),
                   "on every machine and switch: ip link set " + fact_text(fact_at(port, "netdev")) + " mtu 4200"});
  }
  if (fact_list(port, "gids").empty()) {
    out.push_back({name + ": no GID", "an IP address for " + fact_text(fact_at(port, "netdev"))});
  }
}

void judge_placement(const Json& facts, const Json& device, const Wanted& wanted, std::vector<Finding>& out) {
  const Json& node = fact_at(device, "numa_node");
  if (!node.is_number()) return;
  const auto number = node.get<long long>();
  for (const Json& each : fact_list(facts, "numa_nodes")) {
    if (fact_text(fact_at(each, "node")) != std::to_string(number)) continue;
    const std::set<int> near = core_set(fact_text(fact_at(each, "cores")));
    for (const int core : core_set(wanted.cores)) {
      if (near.contains(core)) continue;
      out.push_back(
          {fmt::format("core {} is not on NUMA node {}, where {} is", core, number, fact_text(fact_at(device, "name"))),
           fmt::format("numa_node={} in the hosts file", number)});
      return;
    }
  }
  if (wanted.numa_node >= 0 && wanted.numa_node != number) {
    out.push_back({fmt::format("the threads are to run on NUMA node {}, {} is on node {}", wanted.numa_node,
                               fact_text(fact_at(device, "name")), number),
                   fmt::format("numa_node={} in the hosts file", number)});
  }
}

void judge_device(const Json& facts, const Json& device, const Wanted& wanted, std::vector<Finding>& out) {
  const std::string name = fact_text(fact_at(device, "name"));
  if (fact_at(device, "software") == true) {
    out.push_back({name + " is made of software: its rates say nothing about an RDMA NIC", "a device of hardware"});
  }
  judge_pcie(name, fact_at(device, "pcie"), out);
  const std::string iommu = fact_text(fact_at(device, "iommu"));
  if (iommu.starts_with("DMA")) {
    out.push_back({name + ": the IOMMU translates its DMA", "boot with iommu=pt"});
  }
  judge_placement(facts, device, wanted, out);
  for (const Json& port : fact_list(device, "ports")) {
    const std::string number = fact_text(fact_at(port, "port"));
    if (wanted.ib_port == 0 || std::to_string(wanted.ib_port) == number) judge_port(name + ":" + number, port, out);
  }
}

}  // namespace

std::vector<Finding> judge_host(const Json& facts, const Wanted& wanted) {
  std::vector<Finding> out;
  bool found = false;
  for (const Json& device : fact_list(facts, "devices")) {
    if (!wanted.device.empty() && fact_text(fact_at(device, "name")) != wanted.device) continue;
    found = true;
    judge_device(facts, device, wanted, out);
  }
  if (!found) {
    out.push_back({wanted.device.empty() ? "no RDMA device" : "no RDMA device " + wanted.device,
                   "the driver (modprobe mlx5_ib), or another device= in the hosts file"});
  }
  judge_cpu(facts, out);
  judge_memory(facts, out);
  return out;
}

}  // namespace verbscope
