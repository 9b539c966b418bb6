// Workloads that run on both kinds of node, the host and the simulator, and the wait for the end of a run.
#pragma once

#include <memory>
#include <type_traits>

#include "microbench/bench/benchmark.hpp"
#include "nic_sim/host/sim_node.hpp"

namespace verbscope {

// Implements both run() functions by one template: Derived has `template <Node N> void step(N&, const RunControl&,
// ThreadTally&)`. Base: Workload, or what a program adds to it.
template <class Derived, class Base = Workload>
class WorkloadOn : public Base {
 public:
  void run(HostNode& node, const RunControl& control, ThreadTally& tally) override {
    self().step(node, control, tally);
  }
  void run(SimNode& node, const RunControl& control, ThreadTally& tally) override { self().step(node, control, tally); }

 private:
  Derived& self() { return static_cast<Derived&>(*this); }
};

// Waits for the end of the run.
template <Node N>
void wait_for_quit(N& node, const RunControl& control) {
  if constexpr (std::is_same_v<N, HostNode>) {
    control.quit.wait(false);
  } else {
    while (!control.quit.load(std::memory_order_relaxed)) node.idle();
  }
}

// The end of a thread if both sides post (Operation::both_ways): its requests are complete, and it waits until all
// other threads are done. A failed thread returns at once.
template <Node N>
void stay_drained(N& node, const RunControl& control, ThreadTally& tally) {
  if (tally.end.kind != EndKind::finished) return;
  tally.set_drained();
  wait_for_quit(node, control);
}

// The workload of a thread whose machine is only a target: it waits for the end of the run and costs no CPU time.
std::unique_ptr<Workload> make_idle();

}  // namespace verbscope
