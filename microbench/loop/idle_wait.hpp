// What a data-path loop does when a poll found nothing: spin, or with events arm the queue, poll once more, and sleep.
#pragma once

#include <infiniband/verbs.h>

#include <chrono>

#include "common/units.hpp"
#include "machine/node.hpp"
#include "microbench/bench/control.hpp"

namespace verbscope {

class IdleWait {
 public:
  // Without a channel it spins.
  IdleWait(ibv_cq* cq, ibv_comp_channel* channel, ThreadTally& tally) : cq_(cq), channel_(channel), tally_(tally) {}

  // Call when a poll found nothing, then poll again. It sleeps for at most kLongestSleep, so that a loop that looks at
  // the phase and the order to quit after each call sees them soon.
  template <Node N>
  void idle(N& node) {
    if (channel_ == nullptr) return node.relax();
    if (!armed_) {
      armed_ = ibv_req_notify_cq(cq_, 0) == 0;
      if (!armed_) return node.relax();
      tally_.armed.store(tally_.armed.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
      return;
    }
    if (node.await_event(channel_, kLongestSleep) != nullptr) armed_ = false;
  }

 private:
  static constexpr Nanos kLongestSleep = std::chrono::milliseconds(1);

  ibv_cq* cq_;
  ibv_comp_channel* channel_;
  ThreadTally& tally_;
  bool armed_ = false;
};

}  // namespace verbscope
