// The doctor on planted trees: what it reads, what it marks, and that it survives what another machine may send.
#include "harness/doctor/host_facts.hpp"
#include "harness/doctor/report.hpp"
#include "tests/harness/fakes.hpp"

namespace verbscope {
namespace {

// A /sys and /proc with a good dual-socket host: an mlx5 card on NUMA node 0.
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
    put(kDevice + "device/numa_node", "0");
    put(kDevice + "device/current_link_speed", "8.0 GT/s PCIe");
    put(kDevice + "device/max_link_speed", "8.0 GT/s PCIe");
    put(kDevice + "device/current_link_width", "16");
    put(kDevice + "device/max_link_width", "16");
    put(kDevice + "ports/1/state", "4: ACTIVE");
    put(kDevice + "ports/1/link_layer", "Ethernet");
    put(kDevice + "ports/1/rate", "100 Gb/sec (4X EDR)");
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
  std::vector<std::string> found(const Wanted& wanted = {}) const {
    std::vector<std::string> out;
    for (const Finding& finding : judge_host(facts(), wanted)) {
      EXPECT_FALSE(finding.todo.empty()) << finding.what;
      out.push_back(finding.what);
    }
    return out;
  }

  inline static const std::string kDevice = "sys/class/infiniband/mlx5_0/";

 private:
  TempFolder folder_;
};

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Doctor, ReadsWhatLinuxSays) {
  const Json facts = Tree().facts();
  EXPECT_EQ(facts.at("cpu"), "Xeon E5-2683");
  EXPECT_EQ(facts.at("turbo"), false);
  EXPECT_TRUE(facts.at("memlock_bytes").is_null());
  EXPECT_EQ(facts.at("iommu"), "off");
  EXPECT_EQ(facts.at("pcm").at("usable"), true);
  EXPECT_EQ(facts.at("papi").at("usable"), true);
  const Json& device = facts.at("devices").at(0);
  EXPECT_EQ(device.at("firmware"), "16.35.2000");
  EXPECT_EQ(device.at("numa_node"), 0);
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

TEST(Doctor, ADriverFromOutsideTheKernelHasAVersion) {
  Tree tree;
  tree.link(Tree::kDevice + "device/driver", "../bus/pci/drivers/mlx5_core");
  EXPECT_EQ(tree.facts().at("devices").at(0).at("driver"), "mlx5_core");
  EXPECT_TRUE(tree.facts().at("devices").at(0).at("driver_version").is_null());
  tree.put("sys/module/mlx5_core/version", "5.8-3.0.7");
  EXPECT_EQ(tree.facts().at("devices").at(0).at("driver_version"), "5.8-3.0.7");
}

TEST(Doctor, AGoodHostIsSaidToBeGood) {
  const Tree tree;
  EXPECT_THAT(tree.found(), testing::IsEmpty());
  const std::string report = host_report("n", tree.facts(), {});
  EXPECT_THAT(report, HasSubstr("PCIe 8.0 GT/s PCIe x16 (can 8.0 GT/s PCIe x16)"));
  EXPECT_THAT(report, HasSubstr("nothing here spoils a measurement\n"));
}

TEST(Doctor, EachSpoilerIsMarkedWithWhatToDo) {
  struct Case {
    std::string path, text, finding;
  };
  const std::string device = Tree::kDevice;
  for (const Case& each : std::vector<Case>{
           {device + "device/current_link_width", "8",
            "mlx5_0: PCIe runs at 8.0 GT/s PCIe x8, the card can 8.0 GT/s PCIe x16"},
           {device + "device/current_link_speed", "5.0 GT/s PCIe",
            "mlx5_0: PCIe runs at 5.0 GT/s PCIe x16, the card can 8.0 GT/s PCIe x16"},
           {device + "device/iommu_group/type", "DMA-FQ", "mlx5_0: the IOMMU translates its DMA"},
           {device + "ports/1/state", "1: DOWN", "mlx5_0:1: state DOWN, not ACTIVE"},
           {"sys/class/net/eth2/mtu", "1500", "mlx5_0:1: path MTU at most 1024 bytes, for eth2 has 1500"},
           {"sys/devices/system/cpu/cpufreq/policy3/scaling_governor", "powersave",
            "cores: governor powersave, not performance"},
           {"sys/devices/system/cpu/intel_pstate/no_turbo", "0", "turbo is on: the clock follows temperature and load"},
           {"sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "0",
            "no huge pages are set aside: large regions miss in the NIC's translation cache"},
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

TEST(Doctor, WhatTheHostsFileWantsIsComparedWithTheDevice) {
  const Tree tree;
  EXPECT_THAT(tree.found({.device = "mlx5_7"}), ElementsAre("no RDMA device mlx5_7"));
  EXPECT_THAT(tree.found({.device = "mlx5_0", .cores = "4-10"}), testing::IsEmpty());
  EXPECT_THAT(tree.found({.cores = "3,14"}), ElementsAre("core 14 is not on NUMA node 0, where mlx5_0 is"));
  EXPECT_THAT(tree.found({.numa_node = 1}), ElementsAre("the threads are to run on NUMA node 1, mlx5_0 is on node 0"));
}

TEST(Doctor, TheCoresThatThreadsGetByDefaultAreComparedWithTheDevice) {
  Tree tree;
  tree.put(Tree::kDevice + "device/numa_node", "1");
  EXPECT_THAT(tree.found(),
              ElementsAre("threads run on the cores from 0 on unless told otherwise, mlx5_0 is on NUMA node 1"));
  EXPECT_THAT(tree.found({.cores = "14-20"}), testing::IsEmpty());
  EXPECT_THAT(tree.found({.numa_node = 1}), testing::IsEmpty());
}

// 8 GT/s * 128/130 * 8 lanes = 63.0 Gb/s, of which 256 of 280 bytes are payload: 57.6.
TEST(Doctor, APortIsComparedWithItsSlot) {
  Tree tree;
  for (const char* width : {"current_link_width", "max_link_width"}) tree.put(Tree::kDevice + "device/" + width, "8");
  EXPECT_THAT(tree.found(),
              ElementsAre("mlx5_0:1: 100 Gb/s on the network, the slot of mlx5_0 carries 58 Gb/s (8.0 GT/s PCIe x8)"));
  tree.put(Tree::kDevice + "ports/1/rate", "56 Gb/sec (4X FDR)");
  EXPECT_THAT(tree.found(), testing::IsEmpty());
}

// Two functions of one adapter at 16 GT/s x16: 230 Gb/s for two ports of 200.
TEST(Doctor, ThePortsOfASlotAreAddedUp) {
  Tree tree;
  tree.remove(Tree::kDevice + "device");
  const std::string complex = "sys/devices/pci0000:d7/0000:d7:00.0/";
  for (const std::string function : {"0", "1"}) {
    const std::string device = "sys/class/infiniband/mlx5_" + function + "/";
    const std::string pci = complex + "0000:d8:00." + function;
    for (const char* name : {"current_link_", "max_link_"}) {
      tree.put(pci + "/" + name + "speed", "16.0 GT/s PCIe");
      tree.put(pci + "/" + name + "width", "16");
    }
    tree.put(device + "ports/1/state", "4: ACTIVE");
    tree.put(device + "ports/1/link_layer", "InfiniBand");
    tree.put(device + "ports/1/rate", "200 Gb/sec (4X HDR)");
    tree.link(device + "device", "../../../" + pci.substr(4));
  }
  EXPECT_THAT(
      tree.found(),
      ElementsAre(
          "mlx5_0:1, mlx5_1:1: 400 Gb/s on the network, the slot 0000:d8:00 carries 230 Gb/s (16.0 GT/s PCIe x16)"));
  tree.put("sys/class/infiniband/mlx5_1/ports/1/state", "1: DOWN");
  EXPECT_THAT(tree.found(), ElementsAre("mlx5_1:1: state DOWN, not ACTIVE"));
}

// 25 Gb/s Ethernet is one lane of EDR, and 10 Gb/s one of QDR.
TEST(Doctor, InfiniBandAtOneLaneOrSdrIsMarkedAndEthernetIsNot) {
  Tree tree;
  for (const char* rate : {"25 Gb/sec (1X EDR)", "10 Gb/sec (1X QDR)"}) {
    tree.put(Tree::kDevice + "ports/1/rate", rate);
    EXPECT_THAT(tree.found(), testing::IsEmpty()) << rate;
  }
  tree.put(Tree::kDevice + "ports/1/link_layer", "InfiniBand");
  tree.put(Tree::kDevice + "ports/1/rate", "50 Gb/sec (1X HDR)");
  EXPECT_THAT(tree.found(), ElementsAre(HasSubstr("up at 50 Gb/sec (1X HDR), one lane of four")));
  tree.put(Tree::kDevice + "ports/1/rate", "10 Gb/sec (4X SDR)");
  EXPECT_THAT(tree.found(), ElementsAre(HasSubstr("up at 10 Gb/sec (4X SDR), the lowest speed")));
  tree.put(Tree::kDevice + "ports/1/rate", "100 Gb/sec (2X HDR)");
  EXPECT_THAT(tree.found(), testing::IsEmpty());
}

TEST(Doctor, ALinkThatCannotBeReadIsNotJudged) {
  for (const char* speed : {"Unknown", "Unknown speed"}) {
    Tree tree;
    tree.put(Tree::kDevice + "device/current_link_speed", speed);
    tree.put(Tree::kDevice + "device/current_link_width", "0");
    EXPECT_THAT(tree.found(), testing::IsEmpty());
    EXPECT_THAT(host_report("n", tree.facts(), {}), HasSubstr("PCIe not known (can 8.0 GT/s PCIe x16)"));
  }
}

// mlx4 has both ports under one device; without an address the second one has no GID that names its network device.
TEST(Doctor, APortHasItsOwnNetworkDevice) {
  Tree tree;
  tree.put(Tree::kDevice + "ports/2/state", "4: ACTIVE");
  tree.put(Tree::kDevice + "ports/2/link_layer", "Ethernet");
  tree.put("sys/class/net/eth3/mtu", "4200");
  tree.put(Tree::kDevice + "device/net/eth2/dev_port", "0");
  tree.put(Tree::kDevice + "device/net/eth3/dev_port", "1");
  const auto netdev = [&tree] { return tree.facts().at("devices").at(0).at("ports").at(1).at("netdev"); };
  EXPECT_EQ(netdev(), "eth3");
  tree.put(Tree::kDevice + "device/net/eth3/dev_port", "0");
  tree.put(Tree::kDevice + "device/net/eth3/dev_id", "0x1");
  EXPECT_EQ(netdev(), "eth3");
  tree.remove(Tree::kDevice + "device/net");
  EXPECT_EQ(netdev(), nullptr);
}

TEST(Doctor, ADeviceWithoutHardwareIsNoMeasure) {
  Tree tree;
  tree.remove(Tree::kDevice + "device");
  tree.put(Tree::kDevice + "parent", "eth2");
  EXPECT_THAT(tree.found(), ElementsAre("mlx5_0 is made of software: its rates say nothing about an RDMA NIC"));
}

TEST(Doctor, CountersThatCannotBeUsedSayWhy) {
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

TEST(Doctor, AnEmptyTreeIsNotKnownAndNotAFailure) {
  const TempFolder empty;
  const Json facts = host_facts(SysTree(empty.file("")), "");
  EXPECT_THAT(host_report("n", facts, judge_host(facts, {})), HasSubstr("! no RDMA device\n"));
}

TEST(Doctor, WhatAnotherMachineSendsIsNeverTrusted) {
  for (const char* text :
       {"null", "[]", R"({"devices": 7, "governors": {"a": 1}, "memlock_bytes": "x"})",
        R"({"devices": [1, null, {"ports": [[], {"gids": [3]}], "pcie": [], "numa_node": "\u001b[2J"}]})"}) {
    const Json facts = Json::parse(text);
    const std::string report = host_report("n", facts, judge_host(facts, {.device = "", .cores = "x-,9999999999"}));
    EXPECT_EQ(report.find('\x1b'), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace verbscope
