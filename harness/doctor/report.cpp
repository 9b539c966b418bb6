#include "harness/doctor/report.hpp"

#include <fmt/ranges.h>

#include "common/stall_counters.hpp"
#include "harness/doctor/findings.hpp"
#include "harness/doctor/host_facts.hpp"

namespace verbscope {
namespace {

std::string or_unknown(const Json& value) {
  const std::string text = fact_text(value);
  return text.empty() ? "not known" : text;
}

// One line of the stall counters that are not 0, counted since the driver was loaded; empty if there are none.
std::string stalls_line(const Json& stalls) {
  std::vector<std::string> parts;
  for (const StallCounter& each : kStallCounters) {
    const Json& count = fact_at(stalls, std::string(each.name).c_str());
    if (count.is_number())
      parts.push_back(fmt::format("{} {} ({}: {})", fact_text(count), each.unit, each.name, each.cause));
  }
  return parts.empty() ? "" : fmt::format("      counted since the driver was loaded: {}\n", fmt::join(parts, ", "));
}

std::string port_lines(const Json& port) {
  std::string out =
      fmt::format("    port {}: {}, {}, {}", or_unknown(fact_at(port, "port")), or_unknown(fact_at(port, "state")),
                  or_unknown(fact_at(port, "link_layer")), or_unknown(fact_at(port, "rate")));
  if (fact_at(port, "mtu_bytes").is_number()) out += ", path MTU " + fact_text(fact_at(port, "mtu_bytes"));
  if (fact_at(port, "netdev").is_string()) {
    out +=
        fmt::format(", {} (MTU {})", fact_text(fact_at(port, "netdev")), or_unknown(fact_at(port, "netdev_mtu_bytes")));
  }
  out += "\n";
  out += stalls_line(fact_at(port, "stalls"));
  for (const Json& gid : fact_list(port, "gids")) {
    out += fmt::format("      GID {:>3} {} {}\n", fact_text(fact_at(gid, "index")), fact_text(fact_at(gid, "gid")),
                       fact_text(fact_at(gid, "type")));
  }
  return out;
}

std::string device_lines(const Json& device) {
  const Json& pcie = fact_at(device, "pcie");
  std::string out =
      fmt::format("  {}: {}, firmware {}, NUMA node {}, ", fact_text(fact_at(device, "name")),
                  fact_at(device, "software") == true ? "software" : or_unknown(fact_at(device, "driver")),
                  or_unknown(fact_at(device, "firmware")), or_unknown(fact_at(device, "numa_node")));
  if (pcie.is_object()) {
    out += fmt::format("PCIe {} (card supports: {})\n", pcie_text(fact_at(pcie, "speed"), fact_at(pcie, "width")),
                       pcie_text(fact_at(pcie, "max_speed"), fact_at(pcie, "max_width")));
  } else {
    out += "no PCIe link\n";
  }
  out += stalls_line(fact_at(device, "stalls"));
  for (const Json& port : fact_list(device, "ports")) out += port_lines(port);
  return out;
}

std::string on_off(const Json& value) {
  return value == true ? "on" : value == false ? "off" : "not known";
}

std::string tool_text(const Json& tool) {
  return fact_at(tool, "usable") == true ? "usable" : "not usable: " + or_unknown(fact_at(tool, "why"));
}

std::string cpu_lines(const Json& facts) {
  std::vector<std::string> governors, nodes, pages;
  for (const Json& each : fact_list(facts, "governors")) governors.push_back(fact_text(each));
  for (const Json& each : fact_list(facts, "numa_nodes")) {
    nodes.push_back(fmt::format("{} ({})", fact_text(fact_at(each, "node")), fact_text(fact_at(each, "cores"))));
  }
  for (const Json& each : fact_list(facts, "huge_pages")) {
    pages.push_back(
        fmt::format("{} of {} KiB", fact_text(fact_at(each, "total")), fact_text(fact_at(each, "size_kib"))));
  }
  const Json& memlock = fact_at(facts, "memlock_bytes");
  return fmt::format("  cores of NUMA nodes {}; governor {}; turbo {}; clock source {}\n", fmt::join(nodes, ", "),
                     governors.empty() ? "not known" : fmt::format("{}", fmt::join(governors, ", ")),
                     on_off(fact_at(facts, "turbo")), or_unknown(fact_at(facts, "clock_source"))) +
         fmt::format("  huge pages {}; locked memory {}; IOMMU {}\n",
                     pages.empty() ? "none" : fmt::format("{}", fmt::join(pages, ", ")),
                     memlock.is_number() ? fmt::format("{} KiB", memlock.get<long long>() / 1024) : "without limit",
                     or_unknown(fact_at(facts, "iommu"))) +
         fmt::format("  PCM {}\n  PAPI {}\n", tool_text(fact_at(facts, "pcm")), tool_text(fact_at(facts, "papi")));
}

}  // namespace

std::string host_report(const std::string& host, const Json& facts, const std::vector<Finding>& findings) {
  std::string out = fmt::format("{}: {}, Linux {}, {}\n", host, or_unknown(fact_at(facts, "hostname")),
                                or_unknown(fact_at(facts, "kernel")), or_unknown(fact_at(facts, "cpu")));
  for (const Json& device : fact_list(facts, "devices")) out += device_lines(device);
  out += cpu_lines(facts);
  for (const Finding& finding : findings) out += fmt::format("  ! {}\n      {}\n", finding.problem, finding.remedy);
  if (findings.empty()) out += "  no problem found\n";
  return out;
}

}  // namespace verbscope
