// Node: what differs between a host, a simulated node and the null device for code on the data path. A benchmark thread
// is a template over it, so that the host's version of each member costs nothing or the bare instruction.
// nic_sim/sim_node.hpp has the simulated counterpart with the same members.
#pragma once

#include <concepts>

#include "common/clock.hpp"
#include "common/units.hpp"

namespace verbscope {

template <class N>
concept Node = requires(N node, Nanos cost) {
  { node.now() } -> std::same_as<Picos>;  // this thread's clock
  {node.relax()};                         // the thread found nothing to do: spin hint, or let simulated time pass
  {node.work(cost)};                      // the thread computed for `cost`: nothing on a host, which really computes
};

// A thread on this machine. The null device uses it as well.
struct HostNode {
  Picos now() const { return TscClock::now(); }
  void relax() const { cpu_relax(); }
  void work(Nanos) const {}
};

static_assert(Node<HostNode>);

}  // namespace verbscope
