// A simulated thread: a fiber pinned to a core of a node, with its own clock. The clock may run ahead of the engine's
// while the thread only computes; sync() lets the engine catch up before the thread interacts with the rest of the
// simulation.
#pragma once

#include <boost/container/small_vector.hpp>
#include <functional>
#include <vector>

#include "nic_sim/host/memory_misses.hpp"
#include "nic_sim/host/pollable.hpp"
#include "nic_sim/host/wc_buffers.hpp"
#include "nic_sim/profile/profile.hpp"
#include "nic_sim/time/fiber.hpp"

namespace verbscope::sim {

struct Partition;

class alignas(64) SimThread {
 public:
  // `home`: the partition that simulates the thread's node.
  SimThread(Partition& home, const HostProfile& host, int core, std::function<void(SimThread&)> body);
  SimThread(const SimThread&) = delete;
  SimThread& operator=(const SimThread&) = delete;

  void start() { fiber_.resume(); }
  int core() const { return core_; }

  // The following are called from inside the thread.
  Picos clock() const { return clock_; }
  void spend(Picos cost) {
    clock_ += cost;
    worked_ += cost;
  }
  // Likewise, for CPU time spent on checking for work.
  void spend_polling(Picos cost) {
    spend(cost);
    polled_ += cost;
  }
  void stall_until(Picos when) { clock_ = when > clock_ ? when : clock_; }
  void sync();
  // The thread polled `queue` at this cost and found it empty. The queue's next entry ends relax().
  void note_empty(Pollable& queue, Picos cost);
  // The thread looks, at this cost, at memory that peers write to. Data that have arrived by now are visible.
  void look(Picos cost);
  // Call after a whole polling pass without work. Advances the thread until an entry is visible in one of the empty
  // queues noted in the pass, watched memory is written, or `deadline`. The thread advances by whole passes, as if it
  // had spun: to the start of the pass at whose end the event is visible. If it polled nothing in the pass, its core is
  // idle meanwhile. If another thread also polls one of the queues, the thread continues with its next pass at once,
  // since the queue's lock determines the time.
  void relax(Picos deadline = Picos::max());

  // sleep() puts the thread to sleep until rouse_at() or `deadline`; idle_until() advances it to `when`. Both leave the
  // core idle. Precondition of sleep(): the thread is in step with the engine (sync).
  void sleep(Picos deadline);
  void idle_until(Picos when);

  // Waits until `lines` of the core's write-combining buffers are free.
  void await_wc_buffers(std::uint64_t lines) {
    if (wc_buffers_.empty_at(clock_)) return;
    if (!wc_buffers_.known_for(lines)) sync();
    stall_until(wc_buffers_.free_for(lines));
  }
  WcBuffers& wc_buffers() { return wc_buffers_; }
  MemoryMisses& misses() { return misses_; }

  // From outside: something that the thread polls is visible at `when`.
  void wake_at(Picos when) {
    if (!asleep_) fiber_.wake_at(when > clock_ ? when : clock_);
  }
  // From outside: ends sleep() at `when`.
  void rouse_at(Picos when) {
    if (asleep_) fiber_.wake_at(when);
  }
  // From outside: CPU time of the thread's core so far, including polling.
  Picos busy() const;
  // From outside: the part of busy() spent on work, without stalls and polling passes that found nothing.
  Picos worked() const { return worked_; }
  // From outside: the part of worked() spent on checking for work.
  Picos polled() const { return polled_; }
  // From outside: memory that the thread watches was written.
  void memory_written() {
    memory_written_ = true;
    wake_at(engine_.now());
  }
  // From outside: something other than a completion changed. The thread must check it before it sleeps.
  void nudge() {
    nudged_ = true;
    wake_at(engine_.now());
  }

 private:
  struct Running;

  void end_pass();
  static void end_sleep(void* thread, std::uint64_t sleep);
  static void end_rest(void* thread, std::uint64_t);

  // Members that each poll and post access, in whole cache lines, including the fiber's own.
  Engine& engine_;
  Partition& home_;
  Picos clock_{0};
  Picos worked_{0};
  Picos polled_{0};
  Picos pass_{0};               // cost of a pass over the empty queues
  Picos alarm_ = Picos::max();  // time of the engine event that ends a relax()
  Picos fell_asleep_{0};
  bool running_ = false;
  bool asleep_ = false;   // until rouse_at
  bool resting_ = false;  // in relax, without polling
  bool nudged_ = false;
  bool looked_ = false;          // at memory, in this pass
  bool memory_written_ = false;  // since the last look
  Fiber fiber_;
  alignas(64) boost::container::small_vector<Pollable*, 1> empty_queues_;
  WcBuffers wc_buffers_;
  MemoryMisses misses_;
  int core_;
  Picos started_{0};
  Picos slept_{0};
  std::uint64_t sleeps_ = 0;
};

}  // namespace verbscope::sim
