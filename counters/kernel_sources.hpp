// Counter sources that read the kernel's counters of the NIC.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "counters/source.hpp"

namespace verbscope {

// Driver statistics of a network interface, as in `ethtool -S`. Throws Error ("eth0: Operation not supported").
Sums read_ethtool(const std::string& interface);

struct NicPlace {
  std::string device;      // "mlx5_0"
  std::vector<int> ports;  // port numbers, from 1
  std::filesystem::path sys = "/sys";
};

// Counters of the device and its ports under /sys/class/infiniband, and the PCIe statistics of the network interface's
// driver.
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

// Parses the output of `rdma -j statistic qp show`: "port1/qp178/rx_write_requests", or "port1/counter4/..." if several
// QPs share a counter. Throws Error if the output has another form.
Sums rdma_statistic_counts(const std::string& output);

// Counters that the kernel has bound to QPs: rdma-statistic(8).
class RdmaStatisticSource final : public SnapshotSource {
 public:
  RdmaStatisticSource(std::string device, std::vector<int> ports)
      : device_(std::move(device)), ports_(std::move(ports)) {}

  std::string name() const override { return "rdma-statistic"; }
  void start() override;
  CounterReport report(double ops_per_s) override;

 private:
  Sums snapshot() override;

  std::string device_;
  std::vector<int> ports_;
};

}  // namespace verbscope
