// A simulated thread: a fiber pinned to a core of a node, with its own clock. The clock may run ahead of the engine's
// while the thread only computes; sync() lets the engine catch up before the thread interacts with the rest of the
// simulation.
#pragma once

#include <boost/container/small_vector.hpp>
#include <cstddef>
#include <functional>

#include "nic_sim/host/core.hpp"
#include "nic_sim/host/polling.hpp"
#include "nic_sim/link/packet_pool.hpp"
#include "nic_sim/profile/profile.hpp"
#include "nic_sim/time/fiber.hpp"
#include "nic_sim/time/logical_process.hpp"

namespace verbscope::sim {

// A set of nodes that are simulated together: a logical process, and the state that its nodes share.
struct alignas(64) Partition : LogicalProcess {
  // `memory`: for the packets of all partitions.
  Partition(PacketMemory& memory, std::size_t number, std::size_t partitions)
      : LogicalProcess(partitions == 1), packets(memory, number, partitions) {}

  SimThread* running = nullptr;  // the thread that runs now; null if the control path runs outside of threads
  PacketPool packets;
};

class alignas(64) SimThread {
 public:
  // `home`: the partition that simulates the thread's node.
  SimThread(Partition& home, const HostProfile& host, std::function<void(SimThread&)> body);
  SimThread(const SimThread&) = delete;
  SimThread& operator=(const SimThread&) = delete;

  void start() { fiber_.resume(); }
  // From outside: ends the thread where it waits, by an exception in its body that destroys the objects on its stack.
  void end();
  // From outside: the thread stands still for `time`, also in the middle of a computation.
  void hold(Picos time) { clock_ = (clock_ > engine_.now() ? clock_ : engine_.now()) + time; }

  // The following are called from inside the thread.
  Picos clock() const { return clock_; }
  void spend(Picos cost) {
    cost = scaled(cost);
    clock_ += cost;
    work_time_ += cost;
  }
  // Likewise, for CPU time spent on checking for work.
  void spend_polling(Picos cost) {
    spend(cost);
    polling_time_ += scaled(cost);
  }
  void stall_until(Picos when) { clock_ = when > clock_ ? when : clock_; }
  // Likewise, until a load or prefetch of memory may go on.
  void wait_for_memory(Picos when) {
    if (when > clock_) memory_time_ += when - clock_;
    stall_until(when);
  }
  void sync();
  // The thread polled `queue` at this cost and found it empty. The queue's next entry ends idle().
  void note_empty(Pollable& queue, Picos cost);
  // The thread polls memory that peers write to, at this cost. Data that have arrived by now are visible.
  void poll_memory(Picos cost);
  // The thread polls memory at this cost, as it has before, until there was a write after look_at_memory(), or
  // recheck().
  void await_memory(Picos cost);
  // The thread looks at memory now.
  void look_at_memory() { memory_written_ = false; }
  // Call after a whole polling pass without work. Advances the thread until an entry is visible in one of the empty
  // queues noted in the pass, watched memory is written, or `deadline`. The thread advances by whole passes, as if it
  // had spun: to the start of the pass at whose end the event is visible. If it polled nothing in the pass, its core is
  // idle meanwhile. If another thread also polls one of the queues, the thread continues with its next pass at once,
  // since the queue's lock determines the time.
  void idle(Picos deadline = Picos::max());

  // sleep() puts the thread to sleep until end_sleep_at() or `deadline`; skip_to() advances its clock to `when`. Both
  // leave the core idle. Precondition of sleep(): the thread is in step with the engine (sync).
  void sleep(Picos deadline);
  void skip_to(Picos when);

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
  void end_sleep_at(Picos when) {
    if (asleep_) fiber_.wake_at(when);
  }
  // From outside: another thread runs on the same core, so that work takes 1 / `speed` of its time. Waits for memory
  // do not.
  void share_core(double speed) { shared_ = static_cast<std::int64_t>((1 / speed - 1) * (1 << kSharedBits)); }
  // From outside: CPU time of the thread's core so far, including polling.
  Picos busy() const;
  // From outside: the part of busy() spent on work, without stalls and polling passes that found nothing.
  Picos work_time() const { return work_time_; }
  // From outside: the part of work_time() spent on checking for work.
  Picos polling_time() const { return polling_time_; }
  // From outside: time spent waiting for memory, which is not in work_time().
  Picos memory_time() const { return memory_time_; }
  // From outside: memory that the thread watches was written.
  void memory_written() {
    memory_written_ = true;
    wake_at(engine_.now());
  }
  // From outside: something that the thread does not poll has changed. The thread must check it before it idles.
  void recheck() {
    recheck_ = true;
    wake_at(engine_.now());
  }

 private:
  struct Running;

  static constexpr int kSharedBits = 10;

  Picos scaled(Picos cost) const {
    if (shared_ == 0) [[likely]]
      return cost;
    return cost + Picos((cost.count() * shared_) >> kSharedBits);
  }
  void pass_over_memory(Picos cost);
  void end_pass();
  static void end_sleep(void* thread, std::uint64_t sleep);
  static void end_idle(void* thread, std::uint64_t);

  // Members that each poll and post access, in whole cache lines, including the fiber's own.
  Engine& engine_;
  Partition& home_;
  Picos clock_{0};
  Picos work_time_{0};
  Picos polling_time_{0};
  Picos pass_{0};                  // cost of a pass over the empty queues
  std::int64_t shared_ = 0;        // what another thread on the core adds to a cost, in 2^-kSharedBits
  Picos idle_end_ = Picos::max();  // time of the engine event that ends idle()
  Picos fell_asleep_{0};
  bool running_ = false;
  bool asleep_ = false;     // until end_sleep_at
  bool core_idle_ = false;  // in idle(), without polling
  bool recheck_ = false;
  bool memory_polled_ = false;   // in this pass
  bool memory_written_ = false;  // since the last poll_memory()
  Fiber fiber_;
  alignas(64) boost::container::small_vector<Pollable*, 1> empty_queues_;
  WcBuffers wc_buffers_;
  MemoryMisses misses_;
  Picos memory_time_{0};
  Picos started_{0};
  Picos idle_time_{0};
  std::uint64_t sleeps_ = 0;
};

}  // namespace verbscope::sim
