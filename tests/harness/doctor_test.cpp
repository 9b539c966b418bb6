// The doctor on trees of fake /sys files: its facts, its findings, and robustness against input from other machines.
#include <algorithm>
#include <map>
#include <sstream>

#include "harness/doctor/host_facts.hpp"
#include "harness/doctor/report.hpp"
#include "tests/harness/fakes.hpp"

namespace verbscope {
namespace {

// A /sys and /proc with a good dual-socket host: an mlx5 card on NUMA node 1.
class Tree {
 public:
  Tree() {
    put("proc/sys/kernel/hostname", "node1");
    put("proc/sys/kernel/osrelease", "6.1.0");
    put("proc/sys/kernel/perf_event_paranoid", "1");
    put("proc/cpuinfo", "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: Xeon E5-2683\nflags\t\t: fpu tsc\n");
    put("proc/cmdline", "BOOT_IMAGE=/vmlinuz quiet");
    put("proc/self/limits",
        "Limit  Soft Limit  Hard Limit  Units\nMax locked memory         unlimited            unlimited  bytes");
    put("proc/self/status", "Name:\tverbscope\nCpus_allowed_list:\t14-27");
    put("sys/devices/system/node/node0/cpulist", "0-13");
    put("sys/devices/system/node/node1/cpulist", "14-27");
    put("sys/devices/system/cpu/cpufreq/policy0/scaling_governor", "performance");
    put("sys/devices/system/cpu/intel_pstate/no_turbo", "1");
    put("sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "512");
    put("sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "500");
    put("sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc");
    put("sys/bus/event_source/devices/cpu/type", "4");
    put("usr/lib/x86_64-linux-gnu/libpapi.so.7.0", "");
    put("usr/sbin/pcm-pcie", "");
    put("dev/cpu/0/msr", "");
    put(kDevice + "fw_ver", "16.35.2000");
    put(kDevice + "board_id", "MT_0000000012");
    put(kDevice + "device/numa_node", "1");
    put(kDevice + "device/current_link_speed", "8.0 GT/s PCIe");
    put(kDevice + "device/max_link_speed", "8.0 GT/s PCIe");
    put(kDevice + "device/current_link_width", "16");
    put(kDevice + "device/max_link_width", "16");
    put(kDevice + "ports/1/state", "4: ACTIVE");
    put(kDevice + "ports/1/link_layer", "Ethernet");
    put(kDevice + "ports/1/rate", "40 Gb/sec (4X QDR)");
    put(kDevice + "ports/1/gids/0", "fe80:0000:0000:0000:0000:0000:0000:0001");
    put(kDevice + "ports/1/gids/3", "0000:0000:0000:0000:0000:ffff:0a09:0001");
    put(kDevice + "ports/1/gids/4", "0000:0000:0000:0000:0000:0000:0000:0000");
    put(kDevice + "ports/1/gid_attrs/types/3", "RoCE v2");
    put(kDevice + "ports/1/gid_attrs/ndevs/0", "eth2");
    put("sys/class/net/eth2/mtu", "4200");
  }

  void link(const std::string& path, const std::string& target) {
    std::filesystem::create_symlink(target, folder_.file(path));
  }
  void put(const std::string& path, const std::string& text) {
    const std::filesystem::path full = folder_.file(path);
    std::filesystem::create_directories(full.parent_path());
    write_text(full, text + "\n");
  }
  void remove(const std::string& path) { std::filesystem::remove_all(folder_.file(path)); }
  Json facts() const { return host_facts(SysTree(folder_.file("")), "/usr/bin:/usr/sbin"); }
  // The first line of each finding.
  std::vector<std::string> found(const HostRequest& request = {}) const {
    std::vector<std::string> out;
    for (const Finding& finding : host_findings(facts(), request)) {
      EXPECT_FALSE(finding.remedy.empty()) << finding.problem;
      out.push_back(finding.problem);
    }
    return out;
  }

  inline static const std::string kDevice = "sys/class/infiniband/mlx5_0/";

 private:
  TempFolder folder_;
};

// The first line of each finding about a tree of doctor_trees/: "FILE = TEXT" and "LINK -> TARGET" below /sys. With
// `as_files` a link is a file with its target, as in archives that store no links.
std::vector<std::string> found_in(const std::string& name, bool as_files = false) {
  const TempFolder folder;
  std::istringstream lines(read_text(VERBSCOPE_SOURCE_DIR "/tests/harness/doctor_trees/" + name + ".txt"));
  int files = 0;
  for (std::string line; std::getline(lines, line); ++files) {
    const std::size_t link = line.find(" -> "), at = std::min(link, line.find(" = "));
    const std::filesystem::path path = folder.file("sys/" + line.substr(0, at));
    std::filesystem::create_directories(path.parent_path());
    const std::string text = line.substr(line.find(' ', at + 1) + 1);
    if (link == std::string::npos || as_files) {
      write_text(path, text + "\n");
    } else {
      std::filesystem::create_symlink(text, path);
    }
  }
  EXPECT_GT(files, 10) << name;
  std::vector<std::string> out;
  for (const Finding& finding : host_findings(host_facts(SysTree(folder.file("")), ""), {}))
    out.push_back(finding.problem);
  return out;
}

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Doctor, ReadsFactsFromSysAndProc) {
  const Json facts = Tree().facts();
  EXPECT_EQ(facts.at("cpu"), "Xeon E5-2683");
  EXPECT_EQ(facts.at("turbo"), false);
  EXPECT_TRUE(facts.at("memlock_bytes").is_null());
  EXPECT_EQ(facts.at("iommu"), "off");
  EXPECT_EQ(facts.at("pcm").at("usable"), true);
  EXPECT_EQ(facts.at("papi").at("usable"), true);
  const Json& device = facts.at("devices").at(0);
  EXPECT_EQ(device.at("firmware"), "16.35.2000");
  EXPECT_EQ(device.at("numa_node"), 1);
  EXPECT_EQ(device.at("software"), false);
  EXPECT_EQ(device.at("pcie").at("width"), "16");
  const Json& port = device.at("ports").at(0);
  EXPECT_EQ(port.at("state"), "ACTIVE");
  EXPECT_EQ(port.at("mtu_bytes"), 4096);
  EXPECT_EQ(port.at("netdev"), "eth2");
  ASSERT_EQ(port.at("gids").size(), 2u) << "an empty entry is none";
  EXPECT_EQ(port.at("gids").at(1).at("index"), 3);
  EXPECT_EQ(port.at("gids").at(1).at("type"), "RoCE v2");
}

TEST(Doctor, ReportsTheVersionOfAnExternalDriver) {
  Tree tree;
  tree.link(Tree::kDevice + "device/driver", "../bus/pci/drivers/mlx5_core");
  EXPECT_EQ(tree.facts().at("devices").at(0).at("driver"), "mlx5_core");
  EXPECT_TRUE(tree.facts().at("devices").at(0).at("driver_version").is_null());
  tree.put("sys/module/mlx5_core/version", "5.8-3.0.7");
  EXPECT_EQ(tree.facts().at("devices").at(0).at("driver_version"), "5.8-3.0.7");
}

TEST(Doctor, ReportsNoProblemOnAGoodHost) {
  const Tree tree;
  EXPECT_THAT(tree.found(), testing::IsEmpty());
  const std::string report = host_report("n", tree.facts(), {});
  EXPECT_THAT(report, HasSubstr("PCIe 8.0 GT/s PCIe x16 (card supports: 8.0 GT/s PCIe x16)"));
  EXPECT_THAT(report, HasSubstr("no problem found\n"));
}

TEST(Doctor, ReportsEachProblemWithARemedy) {
  struct Case {
    std::string path, text, finding;
  };
  const std::string device = Tree::kDevice;
  for (const Case& each : std::vector<Case>{
           {device + "device/current_link_width", "8",
            "mlx5_0: PCIe runs at 8.0 GT/s PCIe x8, but the card supports 8.0 GT/s PCIe x16"},
           {device + "device/current_link_speed", "5.0 GT/s PCIe",
            "mlx5_0: PCIe runs at 5.0 GT/s PCIe x16, but the card supports 8.0 GT/s PCIe x16"},
           {device + "device/iommu_group/type", "DMA-FQ", "mlx5_0: the IOMMU translates its DMA"},
           {device + "ports/1/state", "1: DOWN", "mlx5_0:1: state DOWN, not ACTIVE"},
           {"sys/class/net/eth2/mtu", "1500", "mlx5_0:1: path MTU at most 1024 bytes, because eth2 has MTU 1500"},
           {"sys/devices/system/cpu/cpufreq/policy3/scaling_governor", "powersave",
            "cores: governor powersave, not performance"},
           {"sys/devices/system/cpu/intel_pstate/no_turbo", "0", "turbo is on: the clock follows temperature and load"},
           {"sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "0",
            "no huge pages are reserved: large regions miss in the NIC's translation cache"},
           {"proc/self/limits", "Max locked memory         8388608  8388608  bytes",
            "locked memory is limited to 8192 KiB"},
           {"sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet",
            "clock source hpet, not tsc: the kernel does not trust the time stamp counter"},
           {"proc/cpuinfo", "flags : fpu hypervisor",
            "this is a virtual machine: its rates are not those of the hardware"}}) {
    Tree tree;
    tree.put(each.path, each.text);
    EXPECT_THAT(tree.found(), ElementsAre(each.finding)) << each.path;
  }
}

TEST(Doctor, ReportsExactlyTheFindingsOfEachTree) {
  const std::string gen3_x16 = "the slot (8.0 GT/s PCIe x16) carries 126 Gb/s, TLP headers included";
  const std::string gen3_x8 = "the slot (8.0 GT/s PCIe x8) carries 63 Gb/s, TLP headers included";
  const std::map<std::string, std::vector<std::string>> expected{
      {"good", {}},
      {"two200", {}},  // their addresses are unknown, so they may not share a slot
      {"vf", {}},
      {"vf2", {}},
      {"ucx9520", {"mlx5_0:1, mlx5_1:1: together 200 Gb/s, " + gen3_x16}},
      {"edr_x8", {"mlx5_0:1: the port runs at 100 Gb/s, " + gen3_x8}},
      {"hdr_gen3", {"mlx5_0:1: the port runs at 200 Gb/s, " + gen3_x16}},
      {"rate1x", {"mlx5_0:1: the link came up at 50 Gb/sec (1X HDR): only one lane"}},
      {"ratesdr", {"mlx5_0:1: the link came up at 10 Gb/sec (4X SDR): the lowest speed"}},
      {"numa1", {"threads run on cores 0, 1, ... by default: core 0 is not on NUMA node 1, where mlx5_0 is"}},
      {"mlx4",
       {"mlx4_0:2: path MTU at most 1024 bytes, because ens1d1 has MTU 1500", "mlx4_0:2: no GID",
        "mlx4_0:1, mlx4_0:2: together 80 Gb/s, " + gen3_x8}}};
  for (const auto& [name, findings] : expected) EXPECT_EQ(found_in(name), findings) << name;
  EXPECT_EQ(found_in("ucx9520", true), expected.at("ucx9520"));
}

TEST(Doctor, ReportsUnreadablePcieLinksAsUnknown) {
  Tree tree;
  tree.put(Tree::kDevice + "device/current_link_speed", "Unknown");
  tree.put(Tree::kDevice + "device/current_link_width", "0");
  EXPECT_THAT(tree.found(), testing::IsEmpty());
  EXPECT_THAT(host_report("n", tree.facts(), {}), HasSubstr("PCIe not known (card supports: 8.0 GT/s PCIe x16)"));
  tree.put(Tree::kDevice + "device/current_link_width", "63");  // all bits: the device does not answer
  EXPECT_THAT(tree.found(), testing::IsEmpty());
  tree.put(Tree::kDevice + "device/current_link_speed", "5.0 GT/s PCIe");
  tree.put(Tree::kDevice + "device/current_link_width", "16");
  tree.put(Tree::kDevice + "device/max_link_width", "255");
  EXPECT_THAT(tree.found(), testing::IsEmpty());
  tree.put(Tree::kDevice + "ports/1/rate", "100 Gb/sec (4X EDR)");
  EXPECT_THAT(tree.found(), ElementsAre(HasSubstr("carries 64 Gb/s")))
      << "the current speed is known, the maximum is not";
}

TEST(Doctor, ComparesASlotWithItsRequestedActivePorts) {
  Tree tree;
  const std::string second = Tree::kDevice + "ports/2/";
  tree.put(second + "link_layer", "InfiniBand");
  tree.put(second + "rate", "100 Gb/sec (4X EDR)");
  tree.put(second + "state", "1: DOWN");
  EXPECT_THAT(tree.found(), ElementsAre("mlx5_0:2: state DOWN, not ACTIVE"));
  tree.put(second + "state", "4: ACTIVE");
  EXPECT_THAT(tree.found(), ElementsAre(HasSubstr("mlx5_0:1, mlx5_0:2: together 140 Gb/s")));
  EXPECT_THAT(tree.found({.device = "mlx5_0", .ib_port = 2}), testing::IsEmpty());
  // QDR has 40 Gb/s on the line and 32 Gb/s of data, as much as eight lanes of PCIe 2.0.
  tree.put(second + "rate", "40 Gb/sec (4X QDR)");
  for (const char* kind : {"current", "max"}) {
    tree.put(Tree::kDevice + fmt::format("device/{}_link_speed", kind), "5.0 GT/s PCIe");
    tree.put(Tree::kDevice + fmt::format("device/{}_link_width", kind), "8");
  }
  EXPECT_THAT(tree.found({.device = "mlx5_0", .ib_port = 2}), testing::IsEmpty());
}

TEST(Doctor, IgnoresVirtualFunctionsOfASlot) {
  Tree tree;
  const std::string bus = "sys/devices/pci0000:17/0000:17:00.0/0000:18:00.", all = "sys/class/infiniband/";
  for (const char* each : {"0", "2"}) {
    const std::string device = all + "mlx5_" + each;
    tree.put(device + "/ports/1/state", "4: ACTIVE");
    tree.put(device + "/ports/1/link_layer", "InfiniBand");
    tree.put(device + "/ports/1/rate", "100 Gb/sec (4X EDR)");
    tree.remove(device + "/device");
    tree.put(bus + each + "/current_link_speed", "8.0 GT/s PCIe");
    tree.put(bus + each + "/current_link_width", "16");
    tree.link(device + "/device", std::string("../../../devices/pci0000:17/0000:17:00.0/0000:18:00.") + each);
  }
  EXPECT_THAT(tree.found(), ElementsAre(HasSubstr("together 200 Gb/s")));
  tree.link(bus + "2/physfn", "../0000:18:00.0");
  EXPECT_THAT(tree.found(), testing::IsEmpty());
}

TEST(Doctor, AcceptsOneLaneOnEthernetAndIgnoresLinksThatAreDown) {
  Tree tree;
  const std::string port = Tree::kDevice + "ports/1/";
  tree.put(port + "rate", "25 Gb/sec (1X EDR)");
  EXPECT_THAT(tree.found(), testing::IsEmpty());
  tree.put(port + "rate", "2.5 Gb/sec (1X SDR)");  // drivers report 1 GbE like this
  EXPECT_THAT(tree.found(), ElementsAre(HasSubstr("the lowest speed")));
  tree.put(port + "link_layer", "InfiniBand");
  tree.put(port + "rate", "100 Gb/sec (2X HDR)");
  EXPECT_THAT(tree.found(), testing::IsEmpty());
  tree.put(port + "rate", "10 Gb/sec (4X SDR)");
  tree.put(port + "state", "1: DOWN");
  EXPECT_THAT(tree.found(), ElementsAre("mlx5_0:1: state DOWN, not ACTIVE"));
}

TEST(Doctor, UsesTheAllowedCoresInOrderByDefault) {
  Tree tree;
  tree.put("proc/self/status", "Cpus_allowed_list:\t0-27");
  EXPECT_THAT(tree.found(), ElementsAre(HasSubstr("core 0 is not on NUMA node 1, where mlx5_0 is")));
  EXPECT_THAT(tree.found({.numa_node = 1}), testing::IsEmpty());
  EXPECT_THAT(tree.found({.cores = "20"}), testing::IsEmpty());
  tree.put("sys/devices/system/node/node1/cpulist", "0,2,4");
  tree.put("sys/devices/system/node/node0/cpulist", "1,3,5");
  EXPECT_THAT(tree.found(), ElementsAre(HasSubstr("core 1 is not on NUMA node 1"))) << "the second thread's";
  tree.put(Tree::kDevice + "device/numa_node", "-1");
  EXPECT_THAT(tree.found(), testing::IsEmpty());
}

TEST(Doctor, FindsTheNetworkDeviceOfAPort) {
  Tree tree;
  tree.remove(Tree::kDevice + "ports/1/gid_attrs");
  const auto netdev = [&tree] { return tree.facts().at("devices").at(0).at("ports").at(0).at("netdev"); };
  tree.put(Tree::kDevice + "device/net/ens2/mtu", "4200");
  EXPECT_EQ(netdev(), "ens2") << "one port, one network device";
  tree.put(Tree::kDevice + "device/net/ens1/mtu", "4200");
  EXPECT_TRUE(netdev().is_null()) << "nothing identifies it";
  tree.put("sys/class/net/ens1/dev_id", "0x1");
  tree.put("sys/class/net/ens2/dev_id", "0x0");
  EXPECT_EQ(netdev(), "ens2") << "ens1 is that of port 2";
  tree.put(Tree::kDevice + "device/net/ens1npf0vf0/dev_port", "0");
  tree.put("sys/class/net/ens1npf0vf0/phys_port_name", "pf0vf0");
  EXPECT_EQ(netdev(), "ens2") << "the other represents a virtual function";
}

TEST(Doctor, PrintsStallCountersOfAnyDriver) {
  Tree tree;
  const std::string counters = Tree::kDevice + "ports/1/hw_counters/";
  tree.put(counters + "rnr_nak_retry_err", "12");
  tree.put(counters + "np_cnp_sent", "0");
  tree.put(counters + "Nak Sequence Error", "3");
  tree.put(counters + "rx_read_requests", "99");
  tree.put(Tree::kDevice + "hw_counters/rq_num_oos", "7");
  EXPECT_THAT(tree.found(), testing::IsEmpty()) << "losses of the past are no finding";
  const std::string report = host_report("n", tree.facts(), {});
  EXPECT_THAT(report,
              HasSubstr("counted since the driver was loaded: 12 RNR NAKs (rnr_nak_retry_err: too few RECVs), 3 NAKs "
                        "of a sequence error (Nak Sequence Error: loss)\n"));
  EXPECT_THAT(report, HasSubstr("counted since the driver was loaded: 7 packets out of sequence (rq_num_oos: loss)\n"));
  EXPECT_THAT(report, testing::Not(HasSubstr("rx_read_requests")));
}

TEST(Doctor, RecognizesSoftRoceOnThePortOfAnAdapter) {
  Tree tree;
  tree.put(Tree::kDevice + "parent", "eth2");  // beside the adapter's function
  tree.put(Tree::kDevice + "ports/1/rate", "2.5 Gb/sec (1X SDR)");
  EXPECT_THAT(tree.found(), ElementsAre("mlx5_0 is a software device: its rates do not represent an RDMA NIC"));
}

TEST(Doctor, ComparesTheHostsFileWithTheDevice) {
  const Tree tree;
  EXPECT_THAT(tree.found({.device = "mlx5_7"}), ElementsAre("no RDMA device mlx5_7"));
  EXPECT_THAT(tree.found({.device = "mlx5_0", .cores = "14-20"}), testing::IsEmpty());
  EXPECT_THAT(tree.found({.cores = "14,3"}), ElementsAre("core 3 is not on NUMA node 1, where mlx5_0 is"));
  EXPECT_THAT(tree.found({.numa_node = 0}), ElementsAre("the threads run on NUMA node 0, but mlx5_0 is on node 1"));
}

TEST(Doctor, ReportsADeviceWithoutHardware) {
  Tree tree;
  tree.remove(Tree::kDevice + "device");
  tree.put(Tree::kDevice + "parent", "eth2");
  EXPECT_THAT(tree.found(), ElementsAre("mlx5_0 is a software device: its rates do not represent an RDMA NIC"));
}

TEST(Doctor, ReportsWhyCountersCannotBeUsed) {
  Tree tree;
  tree.remove("dev/cpu/0/msr");
  tree.remove("sys/bus/event_source");
  EXPECT_EQ(tree.facts().at("pcm").at("why"), "no /dev/cpu/0/msr: modprobe msr");
  EXPECT_EQ(tree.facts().at("papi").at("why"),
            "the kernel shows no hardware counters of the CPU: a virtual machine, most often");
  tree.remove("usr");
  EXPECT_EQ(tree.facts().at("pcm").at("why"), "pcm-pcie and pcm-iio are not installed (package pcm)");
  EXPECT_EQ(tree.facts().at("papi").at("why"), "libpapi is not installed");
}

TEST(Doctor, AcceptsAnEmptyTree) {
  const TempFolder empty;
  const Json facts = host_facts(SysTree(empty.file("")), "");
  EXPECT_THAT(host_report("n", facts, host_findings(facts, {})), HasSubstr("! no RDMA device\n"));
}

TEST(Doctor, AcceptsAnyJsonFromAnotherMachine) {
  for (const char* text :
       {"null", "[]", R"({"devices": 7, "governors": {"a": 1}, "memlock_bytes": "x"})",
        R"({"devices": [1, null, {"ports": [[], {"gids": [3]}], "pcie": [], "numa_node": "\u001b[2J"}]})"}) {
    const Json facts = Json::parse(text);
    const std::string report = host_report("n", facts, host_findings(facts, {.device = "", .cores = "x-,9999999999"}));
    EXPECT_EQ(report.find('\x1b'), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace verbscope
