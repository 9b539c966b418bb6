#include "harness/doctor/host_facts.hpp"

#include <algorithm>
#include <sstream>

#include "harness/doctor/device_facts.hpp"

namespace verbscope {
namespace {

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

Json verdict(const std::string& why_not) {
  return Json{{"usable", why_not.empty()}, {"why", why_not}};
}

// Checks that Intel's tools are installed and may read model-specific registers, which requires root.
Json pcm_facts(const SysTree& sys, const std::string& path, const std::string& cpu_info) {
  if (value_after(cpu_info, "vendor_id") != "GenuineIntel") return verdict("no Intel CPU");
  if (!has_program(sys, path, "pcm-pcie") && !has_program(sys, path, "pcm-iio")) {
    return verdict("pcm-pcie and pcm-iio are not installed (package pcm)");
  }
  if (!sys.exists("dev/cpu/0/msr")) return verdict("no /dev/cpu/0/msr: modprobe msr");
  if (!sys.readable("dev/cpu/0/msr")) return verdict("/dev/cpu/0/msr is not readable: PCM needs root");
  return verdict("");
}

Json papi_facts(const SysTree& sys, const Json& paranoid) {
  bool library = false;
  for (const char* folder :
       {"usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu", "usr/lib64", "usr/lib", "usr/local/lib"}) {
    library = library || std::ranges::any_of(sys.list(folder),
                                             [](const std::string& name) { return name.starts_with("libpapi.so"); });
  }
  if (!library) return verdict("libpapi is not installed");
  if (!sys.exists("sys/bus/event_source/devices/cpu") && !sys.exists("sys/bus/event_source/devices/cpu_core")) {
    return verdict("the kernel shows no hardware counters of the CPU: a virtual machine, most often");
  }
  if (paranoid.is_number() && paranoid.get<long long>() > 2) {
    return verdict("kernel.perf_event_paranoid is above 2: only root may count");
  }
  return verdict("");
}

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

}  // namespace verbscope
