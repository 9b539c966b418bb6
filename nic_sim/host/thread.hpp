// A simulated thread: a fiber pinned to a core of a node, with a clock of its own. The clock may run ahead of the
// engine while the thread only computes; sync() lets the rest of the world catch up before the two meet.
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
  // A thread of a node that `home` simulates.
  SimThread(Partition& home, const HostProfile& host, int core, std::function<void(SimThread&)> body);
  SimThread(const SimThread&) = delete;
  SimThread& operator=(const SimThread&) = delete;

  void start() { fiber_.resume(); }
  int core() const { return core_; }

  // From inside the thread.
  Picos clock() const { return clock_; }
  void spend(Picos cost) {
    clock_ += cost;
    worked_ += cost;
  }
  // The same, for asking whether there is something to do.
  void spend_polling(Picos cost) {
    spend(cost);
    polled_ += cost;
  }
  void stall_until(Picos when) { clock_ = when > clock_ ? when : clock_; }
  void sync();
  // The thread found `queue` empty, which cost it `cost`; the queue's next entry ends a park.
  void note_empty(Pollable& queue, Picos cost);
  // The thread looks at memory that peers write to, which costs it `cost`: what has arrived by now is there.
  void look(Picos cost);
  // The thread found nothing to do in a whole pass: time passes until one of the queues noted since has something or
  // watched memory is written or `deadline` comes, in whole passes of polling, as if it had spun: up to the start of
  // the pass at whose end the first can be seen. A thread that polled nothing in the pass costs its core nothing
  // meanwhile. Where another thread polls one of the queues too, the thread goes on with its next pass at once: its
  // turn at the queue's lock is what takes time.
  void relax(Picos deadline = Picos::max());

  // The thread, which is in step with the engine (sync), sleeps until rouse_at or until `deadline` and costs its core
  // nothing meanwhile. idle_until: neither does it up to `when`.
  void sleep(Picos deadline);
  void idle_until(Picos when);

  // Until `lines` of the core's write-combining buffers are free.
  void await_wc_buffers(std::uint64_t lines) {
    if (wc_buffers_.empty_at(clock_)) return;
    if (!wc_buffers_.known_for(lines)) sync();
    stall_until(wc_buffers_.free_for(lines));
  }
  WcBuffers& wc_buffers() { return wc_buffers_; }
  MemoryMisses& misses() { return misses_; }

  // From outside: something that the thread polls can be seen at `when`.
  void wake_at(Picos when) {
    if (!asleep_) fiber_.wake_at(when > clock_ ? when : clock_);
  }
  // From outside: what the thread sleeps for is there at `when`.
  void rouse_at(Picos when) {
    if (asleep_) fiber_.wake_at(when);
  }
  // From outside: what the thread's core has worked for it so far, polling included.
  Picos busy() const;
  // From outside: the part of it that was spent on work: not stalled, and not in passes of polling that found nothing.
  Picos worked() const { return worked_; }
  // From outside: the part of that which asked whether there is something to do.
  Picos polled() const { return polled_; }
  // From outside: memory that the thread watches was written.
  void memory_written() {
    memory_written_ = true;
    wake_at(engine_.now());
  }
  // From outside: something changed that is no completion; the thread is not to sleep before it has looked.
  void nudge() {
    nudged_ = true;
    wake_at(engine_.now());
  }

 private:
  struct Running;

  void end_pass();
  static void end_sleep(void* thread, std::uint64_t sleep);
  static void end_rest(void* thread, std::uint64_t);

  // Every poll and post look at these, which come first, in whole cache lines, the fiber's own part of them too.
  Engine& engine_;
  Partition& home_;
  Picos clock_{0};
  Picos worked_{0};
  Picos polled_{0};
  Picos pass_{0};               // what a pass over the empty queues costs
  Picos alarm_ = Picos::max();  // when an event of the engine will end a rest
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
