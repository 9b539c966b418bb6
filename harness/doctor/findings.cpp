#include "harness/doctor/findings.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>
#include <set>

#include "harness/doctor/host_facts.hpp"
#include "wire/pcie.hpp"

namespace verbscope {
namespace {

// The number at the beginning of "8.0 GT/s PCIe" or "16"; 0 if unknown.
double leading_number(const Json& value) {
  const std::string text = fact_text(value);
  double number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

// Bandwidth of a PCIe link in one direction, TLP headers included. Empty if its speed or width is unknown.
std::optional<double> gbit_per_s(const Json& speed, const Json& width) {
  const double lanes = leading_number(width);
  for (const PcieGeneration& each : kPcieGenerations) {
    if (each.gt_per_s == leading_number(speed) && lanes > 0) return each.lane_mb_per_s * 8e-3 * lanes;
  }
  return std::nullopt;
}

struct Rate {
  double gbit_per_s = 0;
  std::string lanes{}, speed{};  // "4X", "HDR"
};

// "200 Gb/sec (4X HDR)", as the kernel writes it.
Rate rate_of(const Json& port) {
  const std::string text = fact_text(fact_at(port, "rate"));
  const std::size_t open = text.find('('), blank = text.find(' ', open), close = text.find(')', open);
  if (open == std::string::npos || blank == std::string::npos || close == std::string::npos) return {};
  return {.gbit_per_s = leading_number(fact_at(port, "rate")),
          .lanes = text.substr(open + 1, blank - open - 1),
          .speed = text.substr(blank + 1, close - blank - 1)};
}

bool is_infiniband(const Json& port) {
  return fact_text(fact_at(port, "link_layer")) == "InfiniBand";
}

// A port that is down reports its maximum rate, or the kernel's default.
bool is_up(const Json& port) {
  constexpr std::array kUp{"INIT", "ARMED", "ACTIVE"};
  return std::ranges::find(kUp, fact_text(fact_at(port, "state"))) != kUp.end();
}

// The data rate. The nominal rate of InfiniBand up to QDR includes its 8b/10b encoding (IBTA specification 1.7, volume
// 2, chapter 5); that of Ethernet does not.
double data_gbit_per_s(const Json& port) {
  const Rate rate = rate_of(port);
  const bool coded = is_infiniband(port) && (rate.speed == "SDR" || rate.speed == "DDR" || rate.speed == "QDR");
  return coded ? rate.gbit_per_s * 8 / 10 : rate.gbit_per_s;
}

struct SlotPort {
  std::string name;  // "mlx5_0:1"
  double gbit_per_s;
};

struct Slot {
  const Json* pcie;
  std::vector<SlotPort> ports{};
};

// The PCIe link and the ports of each slot. Virtual functions are left out: they share the port of the physical
// function.
std::map<std::string, Slot> slots_of(const std::vector<Json>& devices, int ib_port) {
  std::map<std::string, Slot> slots;
  for (const Json& device : devices) {
    if (fact_at(device, "software") == true || fact_at(device, "virtual_function") == true) continue;
    const std::string name = fact_text(fact_at(device, "name")), address = fact_text(fact_at(device, "slot"));
    // A device with an unknown address gets a slot of its own.
    Slot& slot = slots.try_emplace(address.empty() ? name : address, Slot{&fact_at(device, "pcie")}).first->second;
    for (const Json& port : fact_list(device, "ports")) {
      const std::string number = fact_text(fact_at(port, "port"));
      if (!is_up(port) || (ib_port != 0 && std::to_string(ib_port) != number)) continue;
      if (const double rate = data_gbit_per_s(port); rate > 0) slot.ports.push_back({name + ":" + number, rate});
    }
  }
  return slots;
}

void check_slot(const Slot& slot, std::vector<Finding>& out) {
  const Json &speed = fact_at(*slot.pcie, "speed"), &width = fact_at(*slot.pcie, "width");
  const std::optional<double> carried = gbit_per_s(speed, width);
  if (!carried) return;
  const std::string limit =
      fmt::format("the slot ({}) carries {:.3g} Gb/s, TLP headers included", pcie_text(speed, width), *carried);
  const double can = gbit_per_s(fact_at(*slot.pcie, "max_speed"), fact_at(*slot.pcie, "max_width")).value_or(*carried);
  std::vector<std::string> names;
  double together = 0;
  bool any_alone = false;
  for (const SlotPort& port : slot.ports) {
    names.push_back(port.name);
    together += port.gbit_per_s;
    if (port.gbit_per_s <= *carried) continue;
    any_alone = true;
    out.push_back({fmt::format("{}: the port runs at {:g} Gb/s, {}", port.name, port.gbit_per_s, limit),
                   can >= port.gbit_per_s ? "use a slot with all the lanes and speed of the card"
                                          : "the card's own PCIe is the limit: expect no more than that"});
  }
  if (any_alone || together <= *carried) return;
  out.push_back({fmt::format("{}: together {:g} Gb/s, {}", fmt::join(names, ", "), together, limit),
                 can >= together ? "use a slot with all the lanes and speed of the card"
                                 : "measure one port at a time, or expect no more than that in total"});
}

// Reports a PCIe link that runs below the card's maximum. Ignores links with unknown values.
void check_pcie(const Json& device, std::vector<Finding>& out) {
  const Json& pcie = fact_at(device, "pcie");
  const Json &speed = fact_at(pcie, "speed"), &max_speed = fact_at(pcie, "max_speed");
  const Json &width = fact_at(pcie, "width"), &max_width = fact_at(pcie, "max_width");
  if (std::ranges::any_of(std::array{&speed, &max_speed, &width, &max_width},
                          [](const Json* each) { return leading_number(*each) <= 0; })) {
    return;
  }
  if (leading_number(speed) >= leading_number(max_speed) && leading_number(width) >= leading_number(max_width)) return;
  out.push_back({fmt::format("{}: PCIe runs at {}, but the card supports {}", fact_text(fact_at(device, "name")),
                             pcie_text(speed, width), pcie_text(max_speed, max_width)),
                 "try another slot, reseat the card, or check the slot's setting in the BIOS"});
}

// Reports ports that are up and faster than their slot: a single port, or all ports of one slot together. `ib_port`: 0
// for all.
void check_slots(const std::vector<Json>& devices, int ib_port, std::vector<Finding>& out) {
  for (const auto& [address, slot] : slots_of(devices, ib_port)) check_slot(slot, out);
}

// Reports a link that runs on one lane or at the slowest speed. On Ethernet one lane is normal (25 GbE).
void check_link(const std::string& name, const Json& port, std::vector<Finding>& out) {
  if (!is_up(port)) return;
  const Rate rate = rate_of(port);
  const bool one_lane = rate.lanes == "1X", slowest = rate.speed == "SDR";
  if (is_infiniband(port) ? !one_lane && !slowest : !one_lane || !slowest) return;
  out.push_back({fmt::format("{}: the link came up at {}: {}", name, fact_text(fact_at(port, "rate")),
                             slowest ? "the lowest speed" : "only one lane"),
                 "reseat or replace the cable; check the speed and width that the switch port allows"});
}

// Enough for the pinned buffers, queues and CQs of a run with thousands of QPs. The usual default, 8 MiB or less, is
// not.
constexpr double kEnoughMemlock = 64 << 20;

void check_cpu(const Json& facts, std::vector<Finding>& out) {
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

void check_memory(const Json& facts, std::vector<Finding>& out) {
  const Json& memlock = fact_at(facts, "memlock_bytes");
  if (memlock.is_number() && memlock.get<double>() < kEnoughMemlock) {
    out.push_back({fmt::format("locked memory is limited to {} KiB", memlock.get<long long>() / 1024),
                   "ulimit -l unlimited; for logins by ssh, memlock in /etc/security/limits.conf"});
  }
  for (const Json& pages : fact_list(facts, "huge_pages")) {
    const Json& total = fact_at(pages, "total");
    if (total.is_number() && total.get<double>() > 0) return;
  }
  out.push_back({"no huge pages are reserved: large regions miss in the NIC's translation cache",
                 "as root: sysctl vm.nr_hugepages=1024"});
}

// The name of a port's network device for use in a command; "DEVICE" if unknown.
std::string netdev_name(const Json& port) {
  const std::string name = fact_text(fact_at(port, "netdev"));
  return name.empty() ? "DEVICE" : name;
}

void check_port(const std::string& name, const Json& port, std::vector<Finding>& out) {
  const std::string state = fact_text(fact_at(port, "state"));
  const std::string link_layer = fact_text(fact_at(port, "link_layer"));
  if (state != "ACTIVE") {
    out.push_back({fmt::format("{}: state {}, not ACTIVE", name, state.empty() ? "not known" : state),
                   link_layer == "InfiniBand" ? "check the cable; start a subnet manager (opensm)"
                                              : fmt::format("check the cable; ip link set {} up", netdev_name(port))});
  }
  if (link_layer != "Ethernet") return;
  const Json& mtu = fact_at(port, "mtu_bytes");
  if (mtu.is_number() && mtu.get<double>() < 4096) {
    out.push_back({fmt::format("{}: path MTU at most {} bytes, because {} has MTU {}", name, mtu.get<long long>(),
                               netdev_name(port), fact_text(fact_at(port, "netdev_mtu_bytes"))),
                   fmt::format("on every machine and switch: ip link set {} mtu 4200", netdev_name(port))});
  }
  if (fact_list(port, "gids").empty()) out.push_back({name + ": no GID", "add an IP address to " + netdev_name(port)});
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

void check_placement(const Json& facts, const Json& device, const HostRequest& request, std::vector<Finding>& out) {
  const Json& node = fact_at(device, "numa_node");
  if (!node.is_number()) return;
  const auto number = node.get<long long>();
  const std::string name = fact_text(fact_at(device, "name"));
  const std::string todo = fmt::format("numa_node={} in the hosts file", number);
  if (request.numa_node >= 0) {
    if (request.numa_node == number) return;
    out.push_back(
        {fmt::format("the threads run on NUMA node {}, but {} is on node {}", request.numa_node, name, number), todo});
    return;
  }
  const std::set<int> near = cores_of_node(facts, number);
  const auto is_far = [&near](int core) { return !near.contains(core); };
  if (near.empty()) return;
  if (!request.cores.empty()) {
    const std::set<int> cores = core_set(request.cores);
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

bool is_requested(const HostRequest& request, const Json& device) {
  return request.device.empty() || fact_text(fact_at(device, "name")) == request.device;
}

void check_device(const Json& device, const HostRequest& request, std::vector<Finding>& out) {
  const std::string name = fact_text(fact_at(device, "name"));
  const bool software = fact_at(device, "software") == true;
  if (software) {
    out.push_back({name + " is a software device: its rates do not represent an RDMA NIC", "use a hardware device"});
  } else {
    check_pcie(device, out);
  }
  const std::string iommu = fact_text(fact_at(device, "iommu"));
  if (iommu.starts_with("DMA")) {
    out.push_back({name + ": the IOMMU translates its DMA", "boot with iommu=pt"});
  }
  for (const Json& port : fact_list(device, "ports")) {
    const std::string number = fact_text(fact_at(port, "port"));
    if (request.ib_port != 0 && std::to_string(request.ib_port) != number) continue;
    check_port(name + ":" + number, port, out);
    if (!software) check_link(name + ":" + number, port, out);
  }
}

}  // namespace

std::string pcie_text(const Json& speed, const Json& width) {
  const std::string gt = fact_text(speed), lanes = fact_text(width);
  if (gt.empty() && lanes.empty()) return "not known";
  return fmt::format("{} {}", gt.empty() ? "speed not known," : gt, lanes.empty() ? "width not known" : "x" + lanes);
}

std::vector<Finding> host_findings(const Json& facts, const HostRequest& request) {
  std::vector<Finding> out;
  std::vector<Json> devices;
  for (const Json& device : fact_list(facts, "devices")) {
    if (is_requested(request, device)) devices.push_back(device);
  }
  if (devices.empty()) {
    out.push_back({request.device.empty() ? "no RDMA device" : "no RDMA device " + request.device,
                   "load the driver (modprobe mlx5_ib), or change device= in the hosts file"});
  }
  for (const Json& device : devices) check_device(device, request, out);
  check_slots(devices, request.ib_port, out);
  // A run without --device uses the first device.
  if (!devices.empty()) check_placement(facts, devices.front(), request, out);
  check_cpu(facts, out);
  check_memory(facts, out);
  return out;
}

}  // namespace verbscope
