// A simulated cluster: one process runs every node, in virtual time (sim_link.hpp).
#pragma once

#include <deque>
#include <optional>

#include "microbench/bench/options.hpp"
#include "microbench/run/call_counter.hpp"
#include "microbench/run/fabric.hpp"
#include "microbench/run/sim_link.hpp"
#include "microbench/run/sim_profile.hpp"
#include "nic_sim/cluster.hpp"
#include "nic_sim/profile/profile.hpp"

namespace verbscope {

class SimFabric final : public Fabric {
 public:
  // The cluster that options.fabric names. Throws Error. Both arguments must outlive the fabric.
  SimFabric(Benchmark& benchmark, const Options& options);

 private:
  Plan make_plan() override;
  Link& open(const Plan& plan, Outcome& outcome) override;
  NodeRun& own_node() override { return nodes_.front(); }
  void complete(const Plan& plan, const NodeReport& own, Outcome& outcome) override;
  bool has_model_hardware() const override { return true; }

  NodePlace place_of(std::size_t node, const Plan& plan);

  const Options& options_;
  SimProfile source_;
  Profile profile_;  // with the options for the network
  std::optional<SlowRunNotice> notice_;
  std::optional<SimCluster> cluster_;
  std::deque<CallCounter> counters_;  // one per node, if --counter_sources names driver
  std::deque<NodeRun> nodes_;
  std::optional<SimLink> link_;
};

}  // namespace verbscope
