#include "harness/doctor/findings.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "harness/doctor/fact_reader.hpp"
#include "wire/pcie.hpp"

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
  if (speed.empty() || width.empty() || max_speed.empty() || max_width.empty()) return;  // not known
  if (leading_number(fact_at(pcie, "speed")) >= leading_number(fact_at(pcie, "max_speed")) &&
      leading_number(fact_at(pcie, "width")) >= leading_number(fact_at(pcie, "max_width"))) {
    return;
  }
  out.push_back({fmt::format("{}: PCIe runs at {} x{}, the card can {} x{}", name, speed, width, max_speed, max_width),
                 "another slot, the card reseated, the slot's setting in the BIOS"});
}

// The most that a link carries in messages, Gb/s: its lanes, less the headers of TLPs with 256 bytes. 0: not known.
double carried_gbit(const Json& pcie) {
  const auto most = [&pcie](const char* now, const char* can) {
    return std::max(leading_number(fact_at(pcie, now)), leading_number(fact_at(pcie, can)));
  };
  constexpr double kPayload = 256;
  const double speed = most("speed", "max_speed");
  for (const PcieGeneration& generation : kPcieGenerations) {
    if (generation.gt_per_s != speed) continue;
    const double header = static_cast<double>(generation.request_header.value);
    return generation.lane_mb_per_s * 8e-3 * most("width", "max_width") * kPayload / (kPayload + header);
  }
  return 0;
}

std::string slot_name(const Json& device) {
  const std::string slot = fact_text(fact_at(device, "slot"));
  return slot.empty() ? "of " + fact_text(fact_at(device, "name")) : slot;
}

// The active ports of all functions in a slot against what its link carries, said once, for the first device.
void judge_slot(const Json& facts, const Json& device, std::vector<Finding>& out) {
  std::vector<std::string> names;
  double ports_gbit = 0;
  for (const Json& each : fact_list(facts, "devices")) {
    if (slot_name(each) != slot_name(device) || fact_at(each, "virtual_function") == true) continue;
    for (const Json& port : fact_list(each, "ports")) {
      if (fact_text(fact_at(port, "state")) != "ACTIVE") continue;
      ports_gbit += leading_number(fact_at(port, "rate"));
      names.push_back(fmt::format("{}:{}", fact_text(fact_at(each, "name")), fact_text(fact_at(port, "port"))));
    }
  }
  const Json& pcie = fact_at(device, "pcie");
  const double carried = carried_gbit(pcie);
  if (names.empty() || !names.front().starts_with(fact_text(fact_at(device, "name")) + ":")) return;
  if (carried == 0 || ports_gbit <= carried) return;
  out.push_back({fmt::format("{}: {:.0f} Gb/s on the network, the slot {} carries {:.0f} Gb/s ({} x{})",
                             fmt::join(names, ", "), ports_gbit, slot_name(device), carried,
                             fact_text(fact_at(pcie, "max_speed")), fact_text(fact_at(pcie, "max_width"))),
                 names.size() == 1
                     ? "PCIe is the limit of large messages: a slot with more lanes or a newer generation"
                     : "PCIe is the limit of large messages on all ports together: measure one, or use two slots"});
}

// "100 Gb/sec (4X EDR)": InfiniBand cables have four lanes, and no adapter of today stops at SDR. Of Ethernet the words
// say little: 25 Gb/s is one lane.
void judge_rate(const std::string& name, const Json& port, std::vector<Finding>& out) {
  const std::string rate = fact_text(fact_at(port, "rate"));
  const bool is_narrow = rate.find("(1X") != std::string::npos, is_slow = rate.find("SDR") != std::string::npos;
  if (!is_narrow && !is_slow) return;
  out.push_back(
      {fmt::format("{}: the link is up at {}, {}", name, rate, is_narrow ? "one lane of four" : "the lowest speed"),
       "the cable and its ends, the switch's port; ibportstate tells what both sides can"});
}

void judge_port(const std::string& name, const Json& port, std::vector<Finding>& out) {
  const std::string state = fact_text(fact_at(port, "state"));
  const std::string link_layer = fact_text(fact_at(port, "link_layer"));
  if (state != "ACTIVE") {
    out.push_back({fmt::format("{}: state {}, not ACTIVE", name, state), link_layer == "InfiniBand"
                                                                             ? "the cable; a subnet manager (opensm)"
                                                                             : "the cable; ip link set DEVICE up"});
  }
  if (link_layer == "InfiniBand" && state == "ACTIVE") judge_rate(name, port, out);
  if (link_layer != "Ethernet") return;
  const Json& mtu = fact_at(port, "mtu_bytes");
  if (mtu.is_number() && mtu.get<double>() < 4096) {
    out.push_back({fmt::format("{}: path MTU at most {} bytes, for {} has {}", name, mtu.get<long long>(),
                               fact_text(fact_at(port, "netdev")), fact_text(fact_at(port, "netdev_mtu_bytes"))),
                   "on every machine and switch: ip link set " + fact_text(fact_at(port, "netdev")) + " mtu 4200"});
  }
  if (fact_list(port, "gids").empty()) {
    const std::string netdev = fact_text(fact_at(port, "netdev"));
    out.push_back({name + ": no GID", "an IP address for " + (netdev.empty() ? "its network device" : netdev)});
  }
}

// The lowest core of the machine; -1: not known.
int first_core(const Json& facts) {
  int first = -1;
  for (const Json& each : fact_list(facts, "numa_nodes")) {
    const std::set<int> cores = core_set(fact_text(fact_at(each, "cores")));
    if (!cores.empty() && (first < 0 || *cores.begin() < first)) first = *cores.begin();
  }
  return first;
}

void judge_placement(const Json& facts, const Json& device, const Wanted& wanted, std::vector<Finding>& out) {
  const Json& node = fact_at(device, "numa_node");
  if (!node.is_number()) return;
  const auto number = node.get<long long>();
  for (const Json& each : fact_list(facts, "numa_nodes")) {
    if (fact_text(fact_at(each, "node")) != std::to_string(number)) continue;
    const std::set<int> near = core_set(fact_text(fact_at(each, "cores")));
    if (const int first = first_core(facts);
        wanted.cores.empty() && wanted.numa_node < 0 && first >= 0 && !near.empty() && !near.contains(first)) {
      out.push_back(
          {fmt::format("threads run on the cores from {} on unless told otherwise, {} is on NUMA node {}", first,
                       fact_text(fact_at(device, "name")), number),
           fmt::format("numa_node={} in the hosts file, or --cores {}", number, fact_text(fact_at(each, "cores")))});
    }
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
  judge_slot(facts, device, out);
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
