// The time of a simulated cluster. Its partitions run side by side on threads of the host, and one after the other on
// one of them, in quanta that are no longer than what the quickest packet takes from node to node: what one partition
// does in a quantum can be seen by none of the others in it. Where a quantum begins follows from the next event of the
// whole cluster, so that the order of events at a node does not depend on how many partitions and threads there are.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "common/units.hpp"
#include "nic_sim/time/barrier.hpp"
#include "nic_sim/time/logical_process.hpp"
#include "nic_sim/time/mailbox.hpp"

namespace verbscope::sim {

class Quanta {
 public:
  // Brings a process what it has in the memory of others, before a quantum; of several processes at the same time.
  using Collect = std::function<void(std::size_t process)>;

  // Each of `longest` at most, by `threads` threads of the host.
  Quanta(std::vector<LogicalProcess*> processes, Mailbox& mailbox, Picos longest, std::size_t threads, Collect collect)
      : processes_(std::move(processes)),
        mailbox_(mailbox),
        longest_(longest),
        threads_(threads),
        collect_(std::move(collect)) {}

  // Between quanta, at `when` (in the past: now), before what else happens then. A simulated thread may only ask for
  // it when its partition is the only one: throws Error.
  void at(Picos when, std::function<void()> action);

  // Until all threads have ended; with several partitions, to the end of the quantum in which the last one did.
  // Rethrows what one threw. Throws Error when all wait and nothing can happen any more.
  void run();

  // Goes on without threads, until nothing can happen any more, or for as long as `most`: timers may be set for later.
  void settle(Picos most);

  Picos now() const;

 private:
  void run_share(std::size_t thread, Barrier& barrier);
  void collect(std::size_t process);
  void run_quantum(std::size_t process);
  void begin_quantum();
  bool begin_next();
  std::int64_t next_time();
  void keep_appointment();
  bool all_ended() const;

  std::vector<LogicalProcess*> processes_;
  Mailbox& mailbox_;
  Picos longest_;
  std::size_t threads_;
  Collect collect_;
  std::multimap<Picos, std::function<void()>> appointments_;
  bool in_quantum_ = false;
  std::optional<Picos> settling_until_;
  std::exception_ptr error_;  // what kept a quantum from beginning
};

}  // namespace verbscope::sim
