#include "harness/doctor/host_facts.hpp"

#include <algorithm>
#include <charconv>
#include <sstream>
#include <string>

#include "common/stall_counters.hpp"
#include "common/text.hpp"
#include "wire/pcie.hpp"

namespace verbscope {
namespace {

constexpr std::size_t kMaxGids = 64;
// RoCE v2 overhead in an Ethernet frame: IPv6 (40), UDP (8), BTH and the largest extended header (12 + 28), ICRC (4);
// IBTA specification release 1.7, annex A17. Linux reserves the same amount (iboe_get_mtu in ib_addr.h).
constexpr long long kRoceHeaderBytes = 40 + 8 + 12 + 28 + 4;

std::string part_after_colon(const std::string& text) {
  const std::size_t colon = text.find(": ");
  return colon == std::string::npos ? text : text.substr(colon + 2);
}

// Some drivers count per port, others per device.
Json stall_facts(const SysTree& sys, const std::string& folder) {
  Json stalls = Json::object();
  for (const StallCounter& each : kStallCounters) {
    const std::string name(each.name);
    const long long count = sys.read_number(folder + "/hw_counters/" + name).value_or(0);
    if (count > 0) stalls[name] = count;
  }
  return stalls;
}

Json gid_facts(const SysTree& sys, const std::string& port) {
  Json gids = Json::array();
  for (const std::string& index : sys.list(port + "/gids")) {
    const std::optional<std::string> gid = sys.read(port + "/gids/" + index);
    if (!gid || gid->find_first_not_of("0:") == std::string::npos) continue;  // an empty entry
    if (gids.size() == kMaxGids) break;
    gids.push_back(
        Json{{"index", std::stoi(index)}, {"gid", *gid}, {"type", sys.read_json(port + "/gid_attrs/types/" + index)}});
  }
  return gids;
}

std::string bus_device(const SysTree& sys, const std::string& device) {
  if (sys.exists(device + "/device/.")) return device + "/device";
  return device + "/" + sys.link_target(device + "/device").value_or("device");
}

// The adapter's port, from 0, to which the network device `net` belongs. Read from dev_port or the older dev_id; empty
// if neither exists.
std::optional<long long> port_index(const SysTree& sys, const std::string& bus, const std::string& net) {
  for (const std::string& folder : {bus + "/net/" + net, "sys/class/net/" + net}) {
    const auto port = sys.read_number(folder + "/dev_port");
    if (port.value_or(0) > 0) return port;
    const std::optional<std::string> id = sys.read(folder + "/dev_id");  // "0x1"
    long long number = 0;
    if (id && id->starts_with("0x")) std::from_chars(id->data() + 2, id->data() + id->size(), number, 16);
    if (number > 0) return number;
    if (port || id) return 0;
  }
  return std::nullopt;
}

// In switchdev mode the function also has network devices that represent virtual functions: "pf0vf3".
bool is_representor(const SysTree& sys, const std::string& net) {
  const std::string name = sys.read("sys/class/net/" + net + "/phys_port_name").value_or("");
  return name.find("pf") != std::string::npos;
}

// The network device of a port: that of its first GID, the parent device of soft-RoCE, or the function's device for
// this port.
std::optional<std::string> netdev_of(const SysTree& sys, const std::string& device, const std::string& number) {
  const std::string ndevs = device + "/ports/" + number + "/gid_attrs/ndevs";
  for (const std::string& index : sys.list(ndevs)) {
    if (const auto name = sys.read(ndevs + "/" + index); name && !name->empty()) return name;
  }
  if (const auto parent = sys.read(device + "/parent"); parent && !parent->empty()) return parent;
  const std::string bus = bus_device(sys, device);
  std::vector<std::string> nets = sys.list(bus + "/net");
  std::erase_if(nets, [&](const std::string& net) { return is_representor(sys, net); });
  for (const std::string& net : nets) {
    const auto index = port_index(sys, bus, net);
    if (index && std::to_string(*index + 1) == number) return net;
    if (!index && nets.size() == 1 && sys.list(device + "/ports").size() == 1) return net;
  }
  return std::nullopt;
}

Json path_mtu(long long netdev_mtu) {
  for (const long long mtu : {4096, 2048, 1024, 512, 256}) {
    if (mtu + kRoceHeaderBytes <= netdev_mtu) return mtu;
  }
  return Json();
}

Json port_facts(const SysTree& sys, const std::string& device, const std::string& number) {
  const std::string port = device + "/ports/" + number;
  const std::optional<std::string> state = sys.read(port + "/state");
  const Json link_layer = sys.read_json(port + "/link_layer");
  Json facts{{"port", number},
             {"state", state ? Json(part_after_colon(*state)) : Json()},
             {"link_layer", link_layer},
             {"rate", sys.read_json(port + "/rate")},
             {"mtu_bytes", nullptr},
             {"netdev", nullptr},
             {"netdev_mtu_bytes", nullptr},
             {"gids", gid_facts(sys, port)},
             {"stalls", stall_facts(sys, port)}};
  const std::optional<std::string> netdev = netdev_of(sys, device, number);
  if (!netdev) return facts;
  facts["netdev"] = *netdev;
  const std::optional<long long> mtu = sys.read_number("sys/class/net/" + *netdev + "/mtu");
  if (!mtu) return facts;
  facts["netdev_mtu_bytes"] = *mtu;
  if (link_layer == "Ethernet") facts["mtu_bytes"] = path_mtu(*mtu);
  return facts;
}

// Null for "Unknown", which virtual functions and guests report.
Json link_speed(const SysTree& sys, const std::string& file) {
  const std::optional<std::string> text = sys.read(file);
  double speed = 0;
  if (text) std::from_chars(text->data(), text->data() + text->size(), speed);
  return speed > 0 ? Json(*text) : Json();
}

// Null for an invalid width: 0, 63 and 255 mean that the link cannot be read.
Json link_width(const SysTree& sys, const std::string& file) {
  const auto width = sys.read_number(file);
  return width && std::ranges::find(kPcieWidths, *width) != kPcieWidths.end() ? sys.read_json(file) : Json();
}

Json pcie_facts(const SysTree& sys, const std::string& bus) {
  if (!sys.exists(bus + "/current_link_speed")) return Json();
  return Json{{"speed", link_speed(sys, bus + "/current_link_speed")},
              {"width", link_width(sys, bus + "/current_link_width")},
              {"max_speed", link_speed(sys, bus + "/max_link_speed")},
              {"max_width", link_width(sys, bus + "/max_link_width")}};
}

// "0000:d8:00" for the function 0000:d8:00.1.
Json slot_facts(const SysTree& sys, const std::string& device) {
  const std::string address = sys.link_name(device + "/device").value_or("");
  const std::size_t dot = address.rfind('.');
  return dot != std::string::npos && std::ranges::count(address, ':') == 2 ? Json(address.substr(0, dot)) : Json();
}

Json device_facts(const SysTree& sys, const std::string& name) {
  const std::string device = "sys/class/infiniband/" + name;
  const std::string bus = bus_device(sys, device);
  const std::optional<std::string> driver = sys.link_name(bus + "/driver");
  const std::optional<long long> numa_node = sys.read_number(bus + "/numa_node");
  Json ports = Json::array();
  for (const std::string& port : sys.list(device + "/ports")) ports.push_back(port_facts(sys, device, port));
  return Json{{"name", name},
              {"driver", driver ? Json(*driver) : Json()},
              {"driver_version", driver ? sys.read_json("sys/module/" + *driver + "/version") : Json()},
              {"firmware", sys.read_json(device + "/fw_ver")},
              {"board", sys.read_json(device + "/board_id")},
              {"numa_node", numa_node && *numa_node >= 0 ? Json(*numa_node) : Json()},
              // Soft-RoCE on an adapter's port shows the adapter's function; its parent is the network device.
              {"software", !sys.exists(bus) || sys.exists(device + "/parent")},
              {"virtual_function", sys.exists(bus + "/physfn")},
              {"iommu", sys.read_json(bus + "/iommu_group/type")},
              {"slot", slot_facts(sys, device)},
              {"pcie", pcie_facts(sys, bus)},
              {"stalls", stall_facts(sys, device)},
              {"ports", ports}};
}

Json rdma_device_facts(const SysTree& sys) {
  Json devices = Json::array();
  for (const std::string& name : sys.list("sys/class/infiniband")) devices.push_back(device_facts(sys, name));
  return devices;
}

// The value of the first line "KEY ... : VALUE".
Json value_after(const std::string& text, const std::string& key) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with(key) && colon != std::string::npos) return line.substr(colon + 2);
  }
  return Json();
}

Json numa_facts(const SysTree& sys) {
  Json nodes = Json::array();
  for (const std::string& name : sys.list("sys/devices/system/node")) {
    if (!name.starts_with("node")) continue;
    nodes.push_back(
        Json{{"node", name.substr(4)}, {"cores", sys.read_json("sys/devices/system/node/" + name + "/cpulist")}});
  }
  return nodes;
}

Json governor_facts(const SysTree& sys) {
  std::vector<std::string> found;
  for (const std::string& policy : sys.list("sys/devices/system/cpu/cpufreq")) {
    const auto governor = sys.read("sys/devices/system/cpu/cpufreq/" + policy + "/scaling_governor");
    if (governor && std::ranges::find(found, *governor) == found.end()) found.push_back(*governor);
  }
  return found;
}

Json turbo_facts(const SysTree& sys) {
  if (const auto off = sys.read_number("sys/devices/system/cpu/intel_pstate/no_turbo")) return *off == 0;
  if (const auto on = sys.read_number("sys/devices/system/cpu/cpufreq/boost")) return *on != 0;
  return Json();
}

Json huge_page_facts(const SysTree& sys) {
  Json pages = Json::array();
  const std::string folder = "sys/kernel/mm/hugepages";
  for (const std::string& name : sys.list(folder)) {  // hugepages-2048kB
    const std::size_t dash = name.find('-');
    if (dash == std::string::npos) continue;
    const std::string size = name.substr(dash + 1, name.find("kB") - dash - 1);
    pages.push_back(Json{{"size_kib", size},
                         {"total", sys.read_number(folder + "/" + name + "/nr_hugepages").value_or(0)},
                         {"free", sys.read_number(folder + "/" + name + "/free_hugepages").value_or(0)}});
  }
  return pages;
}

Json allowed_core_facts(const SysTree& sys) {
  std::istringstream lines(sys.read("proc/self/status").value_or(""));
  const std::string key = "Cpus_allowed_list:";
  for (std::string line; std::getline(lines, line);) {
    std::string cores;
    if (line.starts_with(key) && std::istringstream(line.substr(key.size())) >> cores) return cores;
  }
  return Json();
}

// The soft limit, which a newly started program gets.
Json memlock_facts(const SysTree& sys) {
  std::istringstream lines(sys.read("proc/self/limits").value_or(""));
  const std::string key = "Max locked memory";
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(key)) continue;
    std::istringstream words(line.substr(key.size()));
    long long bytes = 0;
    if (words >> bytes) return bytes;
  }
  return Json();
}

Json iommu_facts(const SysTree& sys) {
  if (sys.list("sys/class/iommu").empty()) return "off";
  const std::string command_line = sys.read("proc/cmdline").value_or("");
  return command_line.find("iommu=pt") != std::string::npos ? "pass-through" : "on";
}

bool has_program(const SysTree& sys, const std::string& path, const std::string& name) {
  std::istringstream folders(path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (folder.starts_with('/') && sys.exists(folder.substr(1) + "/" + name)) return true;
  }
  return false;
}

Json usability(const std::string& why_not) {
  return Json{{"usable", why_not.empty()}, {"why", why_not}};
}

// Checks that Intel's tools are installed and may read model-specific registers, which requires root.
Json pcm_facts(const SysTree& sys, const std::string& path, const std::string& cpu_info) {
  if (value_after(cpu_info, "vendor_id") != "GenuineIntel") return usability("no Intel CPU");
  if (!has_program(sys, path, "pcm-pcie") && !has_program(sys, path, "pcm-iio")) {
    return usability("pcm-pcie and pcm-iio are not installed (package pcm)");
  }
  if (!sys.exists("dev/cpu/0/msr")) return usability("no /dev/cpu/0/msr: modprobe msr");
  if (!sys.readable("dev/cpu/0/msr")) return usability("/dev/cpu/0/msr is not readable: PCM needs root");
  return usability("");
}

Json papi_facts(const SysTree& sys, const Json& paranoid) {
  bool library = false;
  for (const char* folder :
       {"usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu", "usr/lib64", "usr/lib", "usr/local/lib"}) {
    library = library || std::ranges::any_of(sys.list(folder),
                                             [](const std::string& name) { return name.starts_with("libpapi.so"); });
  }
  if (!library) return usability("libpapi is not installed");
  if (!sys.exists("sys/bus/event_source/devices/cpu") && !sys.exists("sys/bus/event_source/devices/cpu_core")) {
    return usability("the kernel shows no hardware counters of the CPU: a virtual machine, most often");
  }
  if (paranoid.is_number() && paranoid.get<long long>() > 2) {
    return usability("kernel.perf_event_paranoid is above 2: only root may count");
  }
  return usability("");
}

constexpr std::size_t kMaxText = 200;

}  // namespace

Json host_facts(const SysTree& sys, const std::string& path) {
  const std::string cpu_info = sys.read("proc/cpuinfo").value_or("");
  const auto paranoid = sys.read_number("proc/sys/kernel/perf_event_paranoid");
  Json facts{{"hostname", sys.read_json("proc/sys/kernel/hostname")},
             {"kernel", sys.read_json("proc/sys/kernel/osrelease")},
             {"cpu", value_after(cpu_info, "model name")},
             {"virtual_machine", cpu_info.find(" hypervisor") != std::string::npos},
             {"numa_nodes", numa_facts(sys)},
             {"allowed_cores", allowed_core_facts(sys)},
             {"governors", governor_facts(sys)},
             {"turbo", turbo_facts(sys)},
             {"huge_pages", huge_page_facts(sys)},
             {"memlock_bytes", memlock_facts(sys)},
             {"iommu", iommu_facts(sys)},
             {"clock_source", sys.read_json("sys/devices/system/clocksource/clocksource0/current_clocksource")},
             {"perf_event_paranoid", paranoid ? Json(*paranoid) : Json()}};
  facts["pcm"] = pcm_facts(sys, path, cpu_info);
  facts["papi"] = papi_facts(sys, facts["perf_event_paranoid"]);
  facts["devices"] = rdma_device_facts(sys);
  return facts;
}

const Json& fact_at(const Json& object, const char* key) {
  static const Json null;
  if (!object.is_object()) return null;
  const auto found = object.find(key);
  return found == object.end() ? null : *found;
}

const Json& fact_list(const Json& object, const char* key) {
  static const Json none = Json::array();
  const Json& value = fact_at(object, key);
  return value.is_array() ? value : none;
}

std::string fact_text(const Json& value) {
  std::string text = value.is_string() ? value.get<std::string>() : value.is_number() ? dump_json(value) : "";
  text.resize(std::min(text.size(), kMaxText));
  return printable_ascii(std::move(text));
}

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

}  // namespace verbscope
