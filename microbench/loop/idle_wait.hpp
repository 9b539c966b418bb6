// A data-path loop whose poll found nothing does one of these: it gives up when nothing more will come; otherwise it
// spins, or with events arms the queue, polls once more, and sleeps.
#pragma once

#include <infiniband/verbs.h>

#include <chrono>

#include "common/units.hpp"
#include "machine/node.hpp"
#include "microbench/bench/control.hpp"

namespace verbscope {

// True if the controller has set `quit` while the thread still waits. Sets `end` to gave_up then.
inline bool must_give_up(const RunControl& control, RunEnd& end) {
  if (!control.quit.load(std::memory_order_relaxed)) [[likely]]
    return false;
  end = {.kind = EndKind::gave_up};
  return true;
}

class IdleWait {
 public:
  // Without a channel it spins.
  IdleWait(ibv_cq* cq, ibv_comp_channel* channel, ThreadTally& tally) : cq_(cq), channel_(channel), tally_(tally) {}

  // Call when a poll found nothing, then poll again. It sleeps for at most kLongestSleep, so that a loop that looks at
  // the phase and the order to quit after each call sees them soon.
  template <Node N>
  void idle(N& node) {
    if (channel_ == nullptr) return node.idle();
    if (!armed_) {
      armed_ = ibv_req_notify_cq(cq_, 0) == 0;
      if (!armed_) return node.idle();
      tally_.armed.store(tally_.armed.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
      return;
    }
    if (node.await_event(channel_, kLongestSleep) != nullptr) armed_ = false;
  }

  // Idles like idle(), for a thread that still waits for something. False: it must give up, and the tally says so.
  template <Node N>
  bool idle_unless_quit(N& node, const RunControl& control) {
    if (must_give_up(control, tally_.end)) [[unlikely]]
      return false;
    idle(node);
    return true;
  }

 private:
  static constexpr Nanos kLongestSleep = std::chrono::milliseconds(1);

  ibv_cq* cq_;
  ibv_comp_channel* channel_;
  ThreadTally& tally_;
  bool armed_ = false;
};

}  // namespace verbscope
