// The NIC's counters as the kernel shows them: of the device and its ports under /sys/class/infiniband, and those of
// the network interface's driver that tell of PCIe.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "counters/snapshot_source.hpp"

namespace verbscope {

struct NicPlace {
  std::string device;      // "mlx5_0"
  std::vector<int> ports;  // port numbers, from 1
  std::filesystem::path sys = "/sys";
};

class NicSource final : public SnapshotSource {
 public:
  using Ethtool = std::function<Sums(const std::string& interface)>;

  // `ethtool` reads an interface's statistics, and throws Error where it has none.
  NicSource(NicPlace place, Ethtool ethtool);

  std::string name() const override { return "nic"; }
  void start() override;
  CounterReport report(double ops_per_s) override;

 private:
  struct Counter {
    std::string name;  // "port1/hw_counters/sent_pkts"
    std::filesystem::path file;
  };
  void find_counters(const std::string& prefix, const std::filesystem::path& folder);
  void find_interface(const std::filesystem::path& device);
  Sums snapshot() override;

  NicPlace place_;
  Ethtool ethtool_;
  std::vector<Counter> counters_;
  std::string interface_;
  std::string no_ethtool_;  // why there is nothing of ethtool
  Sums gauges_;             // ethtool's gauges of the last second
  std::uint64_t lifespan_ms_ = 0;
};

// The root port that the device hangs from, "3a:00.0", as pcm-iio prints it; empty when it is not on PCIe.
std::string root_port_of(const std::string& device, const std::filesystem::path& sys = "/sys");

// Its PCIe address, "0000:3b:00.0"; empty when it is not on PCIe.
std::string pci_address_of(const std::string& device, const std::filesystem::path& sys = "/sys");

}  // namespace verbscope
