// Counters that the kernel has bound to QPs (`rdma statistic qp`, rdma-statistic(8)).
#pragma once

#include <string>
#include <vector>

#include "counters/snapshot_source.hpp"

namespace verbscope {

// Parses the output of `rdma -j statistic qp show`: "port1/qp178/rx_write_requests", or "port1/counter4/..." if several
// QPs share a counter. Throws Error if the output has another form.
Sums rdma_statistic_counts(const std::string& output);

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
