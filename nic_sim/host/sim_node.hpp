// A Node of the simulated cluster: the members of HostNode (machine/node.hpp), in virtual time.
#pragma once

#include <cerrno>
#include <utility>

#include "machine/node.hpp"
#include "nic_sim/host/event_channel.hpp"
#include "nic_sim/host/polling.hpp"
#include "nic_sim/host/shared_lines.hpp"
#include "nic_sim/host/thread.hpp"

namespace verbscope {

class SimNode {
 public:
  // `poll_cost`: CPU time of polling one line of watched memory. `lines`: shared by the threads of the node.
  SimNode(sim::SimThread& thread, sim::MemoryWatch& memory, sim::SharedLines& lines, Picos poll_cost)
      : thread_(&thread), memory_(&memory), lines_(&lines), poll_cost_(poll_cost) {}
  sim::SimThread& thread() const { return *thread_; }
  Picos now() const { return thread_->clock(); }
  void idle() const { thread_->idle(); }
  void idle_until(Picos when) const { thread_->idle(when); }
  void compute(Nanos cost) const { thread_->spend(cost); }
  void watch(const void* memory, std::size_t bytes) const { memory_->add(memory, bytes, *thread_); }
  void poll_memory(std::size_t lines = 1) const { thread_->poll_memory(poll_cost_ * static_cast<std::int64_t>(lines)); }
  void await_memory() const { thread_->await_memory(poll_cost_); }
  std::uint64_t fetch_add(std::uint64_t& word, std::uint64_t amount) const {
    lines_->change(&word, *thread_);
    memory_->written(reinterpret_cast<std::uint64_t>(&word), sizeof word, [this](sim::SimThread& watching) {
      if (&watching != thread_) watching.memory_written();
    });
    return std::exchange(word, word + amount);
  }
  void prefetch(const void* line) const { thread_->wait_for_memory(thread_->misses().prefetch(line, now())); }
  void load(const void* line) const { thread_->wait_for_memory(thread_->misses().load(line, now())); }
  ibv_cq* await_event(ibv_comp_channel* channel, Nanos timeout) const {
    const auto cq = static_cast<sim::SimChannel*>(channel)->events.await(*thread_, now() + timeout);
    if (!cq) errno = ETIMEDOUT;
    return cq.value_or(nullptr);
  }

 private:
  sim::SimThread* thread_;
  sim::MemoryWatch* memory_;
  sim::SharedLines* lines_;
  Picos poll_cost_;
};

static_assert(Node<SimNode>);

}  // namespace verbscope
