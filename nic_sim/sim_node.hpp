// Node on the simulated cluster: the same members as HostNode (verbs/node.hpp), in virtual time.
#pragma once

#include "nic_sim/memory_watch.hpp"
#include "nic_sim/thread.hpp"
#include "verbs/node.hpp"

namespace verbscope {

class SimNode {
 public:
  // `look_cost`: CPU time of one look at watched memory.
  SimNode(sim::SimThread& thread, sim::MemoryWatch& memory, Picos look_cost)
      : thread_(&thread), memory_(&memory), look_cost_(look_cost) {}
  Picos now() const { return thread_->clock(); }
  void relax() const { thread_->relax(); }
  void work(Nanos cost) const { thread_->spend(cost); }
  void watch(const void* memory, std::size_t bytes) const { memory_->add(memory, bytes, *thread_); }
  void look() const { thread_->look(look_cost_); }
  ibv_cq* await_event(ibv_comp_channel* channel, Nanos timeout) const;  // events.cpp

 private:
  sim::SimThread* thread_;
  sim::MemoryWatch* memory_;
  Picos look_cost_;
};

static_assert(Node<SimNode>);

}  // namespace verbscope
