// The rate of SENDs: outbound (the server sends, the clients receive), inbound (the other way round), or both ways at
// once. In records the benchmark of inbound SENDs is recv_rate, otherwise send_rate, whichever program ran.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "microbench/bench/benchmark.hpp"
#include "microbench/bench/options.hpp"

namespace verbscope {

class Sends final : public Benchmark {
 public:
  // `driver`: the side that posts, unless --direction is given.
  explicit Sends(Side driver) : driver_(driver) {}

  Description describe() const override;
  void options(OptionTable& table) override;
  void adjust(Options& options) override;
  std::vector<std::uint32_t> points(const Options& options) const override;
  Plan draft() const override;
  QueueNeeds needs(const Operation& operation, Side side) const override;
  std::unique_ptr<Workload> setup(const ThreadSetup& setup) const override;
  Prediction predict(const ClusterWire& cluster, const Operation& operation, int ports) const override;
  Prediction predict_run(const ClusterWire& cluster, const Operation& operation, int ports,
                         const Json& result) const override;

 private:
  bool inbound() const { return driver_ == Side::client; }

  Side driver_;
  bool both_ways_ = false;
  bool all_ = false;
  bool shared_ = false;
  std::optional<std::uint32_t> recv_list_;
};

}  // namespace verbscope
