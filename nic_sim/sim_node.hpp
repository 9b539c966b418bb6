// Node on the simulated cluster: the same members as HostNode (verbs/node.hpp), in virtual time.
#pragma once

#include "nic_sim/thread.hpp"
#include "verbs/node.hpp"

namespace verbscope {

class SimNode {
 public:
  explicit SimNode(sim::SimThread& thread) : thread_(&thread) {}
  Picos now() const { return thread_->clock(); }
  void relax() const { thread_->relax(); }
  void work(Nanos cost) const { thread_->spend(cost); }

 private:
  sim::SimThread* thread_;
};

static_assert(Node<SimNode>);

}  // namespace verbscope
