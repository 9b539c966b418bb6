// A thread's data path on both kinds of node: the host and the simulator.
#pragma once

#include "microbench/bench/benchmark.hpp"
#include "nic_sim/host/sim_node.hpp"

namespace verbscope {

// Makes both `run`s from one template: Derived has `template <Node N> void step(N&, const RunControl&, ThreadTally&)`.
template <class Derived>
class WorkloadOn : public Workload {
 public:
  void run(HostNode& node, const RunControl& control, ThreadTally& tally) override {
    self().step(node, control, tally);
  }
  void run(SimNode& node, const RunControl& control, ThreadTally& tally) override { self().step(node, control, tally); }

 private:
  Derived& self() { return static_cast<Derived&>(*this); }
};

}  // namespace verbscope
