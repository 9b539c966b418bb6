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
    while (!control.quit.load(std::memory_order_relaxed)) node.relax();
  }
}

std::unique_ptr<Workload> make_idle();

}  // namespace verbscope
