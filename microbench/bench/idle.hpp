// The workload of a thread whose machine is only worked on: it waits for the end of the run and costs it nothing.
#pragma once

#include <memory>
#include <type_traits>

#include "microbench/bench/benchmark.hpp"

namespace verbscope {

template <Node N>
void wait_for_quit(N& node, const RunControl& control) {
  if constexpr (std::is_same_v<N, HostNode>) {
    control.quit.wait(false);
  } else {
    while (!control.quit.load(std::memory_order_relaxed)) node.idle();
  }
}

// The end of a thread of a run in which both sides post (Operation::both_ways): what it has sent is complete, and it
// stays until all others are done, too. One that failed does not stay.
template <Node N>
void stay_drained(N& node, const RunControl& control, ThreadTally& tally) {
  if (tally.end.kind != EndKind::finished) return;
  tally.tell_drained();
  wait_for_quit(node, control);
}

std::unique_ptr<Workload> make_idle();

}  // namespace verbscope
