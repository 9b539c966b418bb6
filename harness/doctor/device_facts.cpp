#include "harness/doctor/device_facts.hpp"

#include <cstdlib>
#include <string>

namespace verbscope {
namespace {

constexpr std::size_t kMaxGids = 64;
// RoCE v2 adds to the payload of an Ethernet frame: IPv6 (40), UDP (8), BTH and the largest extended header (12 + 28),
// ICRC (4), IBTA specification release 1.7, annex A17; Linux leaves the same room (iboe_get_mtu of ib_addr.h).
constexpr long long kRoceHeaderBytes = 40 + 8 + 12 + 28 + 4;

std::string part_after_colon(const std::string& text) {
  const std::size_t colon = text.find(": ");
  return colon == std::string::npos ? text : text.substr(colon + 2);
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

// The network device of a port: of its first GID, the device under a soft-RoCE one, or that which says its number;
// where no device says one, a lone port's first.
std::optional<std::string> netdev_of(const SysTree& sys, const std::string& device, const std::string& number) {
  const std::string gids = device + "/ports/" + number + "/gid_attrs/ndevs";
  for (const std::string& index : sys.list(gids)) {
    if (const auto name = sys.read(gids + "/" + index); name && !name->empty()) return name;
  }
  if (const auto parent = sys.read(device + "/parent"); parent && !parent->empty()) return parent;
  const std::vector<std::string> nets = sys.list(device + "/device/net");
  for (const std::string& net : nets) {
    // The kernel counts from 0: dev_port, and dev_id, in hexadecimal, of older drivers, where dev_port is 0 always.
    const std::string folder = device + "/device/net/" + net;
    const long long port = sys.read_number(folder + "/dev_port").value_or(-1);
    const std::string id = sys.read(folder + "/dev_id").value_or("");
    if (std::to_string(port + 1) == number && (port > 0 || id.empty() || id == "0x0")) return net;
    if (port <= 0 && id.starts_with("0x") && std::to_string(std::strtol(id.c_str(), nullptr, 16) + 1) == number)
      return net;
  }
  return nets.empty() || sys.list(device + "/ports").size() > 1 ? std::nullopt : std::optional(nets.front());
}

// What /sys writes of a link that it cannot read, as of a virtual function, is not known: "Unknown", a width of 0.
Json link_fact(const SysTree& sys, const std::string& path) {
  const std::optional<long long> number = sys.read_number(path);
  return number && *number > 0 ? sys.read_json(path) : Json();
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
             {"gids", gid_facts(sys, port)}};
  const std::optional<std::string> netdev = netdev_of(sys, device, number);
  if (!netdev) return facts;
  facts["netdev"] = *netdev;
  const std::optional<long long> mtu = sys.read_number("sys/class/net/" + *netdev + "/mtu");
  if (!mtu) return facts;
  facts["netdev_mtu_bytes"] = *mtu;
  if (link_layer == "Ethernet") facts["mtu_bytes"] = path_mtu(*mtu);
  return facts;
}

Json pcie_facts(const SysTree& sys, const std::string& pci) {
  if (!sys.exists(pci + "/current_link_speed")) return Json();
  return Json{{"speed", link_fact(sys, pci + "/current_link_speed")},
              {"width", link_fact(sys, pci + "/current_link_width")},
              {"max_speed", link_fact(sys, pci + "/max_link_speed")},
              {"max_width", link_fact(sys, pci + "/max_link_width")}};
}

// "0000:d8:00" of the function 0000:d8:00.1: the functions of an adapter share its slot.
Json slot_of(const SysTree& sys, const std::string& pci) {
  const std::optional<std::string> function = sys.link_name(pci);
  return function && function->find(':') != std::string::npos ? Json(function->substr(0, function->rfind('.')))
                                                              : Json();
}

Json device_facts(const SysTree& sys, const std::string& name) {
  const std::string device = "sys/class/infiniband/" + name;
  const std::string pci = device + "/device";
  const std::optional<std::string> driver = sys.link_name(pci + "/driver");
  const std::optional<long long> numa_node = sys.read_number(pci + "/numa_node");
  Json ports = Json::array();
  for (const std::string& port : sys.list(device + "/ports")) ports.push_back(port_facts(sys, device, port));
  return Json{{"name", name},
              {"driver", driver ? Json(*driver) : Json()},
              {"driver_version", driver ? sys.read_json("sys/module/" + *driver + "/version") : Json()},
              {"firmware", sys.read_json(device + "/fw_ver")},
              {"board", sys.read_json(device + "/board_id")},
              {"numa_node", numa_node && *numa_node >= 0 ? Json(*numa_node) : Json()},
              {"software", !sys.exists(pci)},
              {"iommu", sys.read_json(pci + "/iommu_group/type")},
              {"slot", slot_of(sys, pci)},
              {"virtual_function", sys.exists(pci + "/physfn")},
              {"pcie", pcie_facts(sys, pci)},
              {"ports", ports}};
}

}  // namespace

Json rdma_device_facts(const SysTree& sys) {
  Json devices = Json::array();
  for (const std::string& name : sys.list("sys/class/infiniband")) devices.push_back(device_facts(sys, name));
  return devices;
}

}  // namespace verbscope
