// Advances the time of a simulated cluster. Its partitions run in parallel on threads of the host, in quanta that are
// not longer than the fastest packet from node to node: nothing that a partition does in a quantum affects another in
// the same quantum. The next event of the whole cluster determines where a quantum begins, so that the order of events
// at a node does not depend on the numbers of partitions and threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "common/awaited.hpp"
#include "common/clock.hpp"
#include "common/units.hpp"
#include "nic_sim/time/logical_process.hpp"

namespace verbscope::sim {

// A barrier for threads of the host that meet many thousand times a second. While each thread has its own processor, it
// spins for tens of microseconds before it sleeps, which std::barrier does not.
class Barrier {
 public:
  explicit Barrier(std::uint32_t threads)
      : threads_(threads), spins_(threads > std::thread::hardware_concurrency() ? 0 : kSpins) {}

  // Returns when all threads have arrived. The last one runs `alone`, which must not throw, before any of them
  // continues.
  template <class Alone>
  void arrive_and_wait(Alone&& alone) {
    const std::uint32_t round = round_.load(std::memory_order_relaxed);
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == threads_) {
      arrived_.store(0, std::memory_order_relaxed);
      alone();
      round_ = round + 1;
      return;
    }
    for (int spin = 0; spin < spins_; ++spin) {
      if (round_.load(std::memory_order_acquire) != round) return;
      cpu_relax();
    }
    round_.wait(round);
  }

 private:
  static constexpr int kSpins = 2000;  // each takes 20 to 60 ns

  std::uint32_t threads_;
  int spins_;
  alignas(64) std::atomic<std::uint32_t> arrived_{0};
  alignas(64) Awaited<std::uint32_t> round_;
};

class Quanta {
 public:
  // Called before a quantum: fetches a process's objects from the memory of others. Called concurrently for several
  // processes.
  using Collect = std::function<void(std::size_t process)>;

  // `longest`: maximum length of a quantum. `threads`: threads of the host.
  Quanta(std::vector<LogicalProcess*> processes, Mailbox& mailbox, Picos longest, std::size_t threads, Collect collect)
      : processes_(std::move(processes)),
        mailbox_(mailbox),
        longest_(longest),
        threads_(threads),
        collect_(std::move(collect)) {}

  // Runs `action` between quanta at `when`, or now if that is past, before other events of that time. A simulated
  // thread may call this only if the cluster has a single partition: otherwise throws Error.
  void at(Picos when, std::function<void()> action);

  // `ask` is called before each quantum, for what comes from outside of the simulation: it may add threads and events.
  // `stuck`: all threads wait, and no event is left; then it returns true if there is one now.
  void ask_outside(std::function<bool(bool stuck)> ask) { outside_ = std::move(ask); }

  // Runs until all threads have ended; with several partitions, until the end of the quantum in which the last one
  // ended. Rethrows exceptions of threads. Throws Error if all threads wait and no event is left.
  void run();

  // Continues after the threads have ended, until no event is left or `limit` has passed (timers may be set for later).
  void settle(Picos limit);

  Picos now() const;

 private:
  void run_share(std::size_t thread, Barrier& barrier);
  void collect(std::size_t process);
  void run_quantum(std::size_t process);
  void begin_quantum();
  bool begin_next();
  std::int64_t next_time();
  void run_next_action();
  bool all_ended() const;

  std::vector<LogicalProcess*> processes_;
  Mailbox& mailbox_;
  Picos longest_;
  std::size_t threads_;
  Collect collect_;
  std::multimap<Picos, std::function<void()>> actions_;
  std::function<bool(bool stuck)> outside_;
  bool in_quantum_ = false;
  std::optional<Picos> settling_until_;
  std::exception_ptr error_;  // thrown when a quantum should have begun
};

}  // namespace verbscope::sim
