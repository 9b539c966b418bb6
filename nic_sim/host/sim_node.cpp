#include "nic_sim/host/sim_node.hpp"

#include <algorithm>
#include <cerrno>

#include "nic_sim/host/event_channel.hpp"

namespace verbscope {

ibv_cq* SimNode::await_event(ibv_comp_channel* verbs_channel, Nanos timeout) const {
  sim::SimChannel& channel = *static_cast<sim::SimChannel*>(verbs_channel);
  const Picos deadline = thread_->clock() + timeout;
  bool slept = false;
  thread_->sync();
  while (channel.pending.empty() || channel.pending.front().at > thread_->clock()) {
    if (thread_->clock() >= deadline) {
      errno = ETIMEDOUT;
      return nullptr;
    }
    channel.sleepers.push_back(thread_);
    thread_->sleep(channel.pending.empty() ? deadline : std::min(deadline, channel.pending.front().at));
    std::erase(channel.sleepers, thread_);
    slept = true;
  }
  ibv_cq* const cq = channel.pending.front().cq;
  channel.pending.pop_front();
  if (slept) thread_->idle_until(thread_->clock() + channel.wakeup);
  return cq;
}

}  // namespace verbscope
