// Counters of the NIC from the kernel: those of the device and its ports under /sys/class/infiniband, and the PCIe
// statistics of the network interface's driver.
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

  // `ethtool` returns an interface's statistics, and throws Error if it has none.
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
  std::string no_ethtool_;  // why there are no ethtool statistics
  Sums gauges_;             // gauges from ethtool, about the last second
  std::uint64_t lifespan_ms_ = 0;
};

// The root port above the device, in pcm-iio's notation: "3a:00.0". Empty if the device is not on PCIe.
std::string root_port_of(const std::string& device, const std::filesystem::path& sys = "/sys");

// The device's PCIe address: "0000:3b:00.0". Empty if the device is not on PCIe.
std::string pci_address_of(const std::string& device, const std::filesystem::path& sys = "/sys");

}  // namespace verbscope
