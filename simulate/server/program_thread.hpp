// A thread of a program, and the simulated thread that stands for it: it takes the thread's requests one by one.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "nic_sim/host/sim_node.hpp"
#include "simulate/channel/channel.hpp"
#include "simulate/server/calls.hpp"
#include "simulate/server/outside.hpp"
#include "simulate/server/process.hpp"
#include "simulate/server/station.hpp"

namespace verbscope::simulate {

// What the programs did that a simulation cannot time.
struct Silences {
  std::uint64_t silent = 0;  // times that a thread worked without calls, and was taken for one that watches memory
  std::uint64_t without_core = 0;  // threads that were more than their node has cores, and took no time from others
  std::uint64_t blocked = 0;       // times that a thread slept in the operating system, while others went on
};

// What a thread of a program asks that concerns other threads and processes.
class ProgramThread;
class OperatingSystem {
 public:
  OperatingSystem() = default;
  OperatingSystem(const OperatingSystem&) = delete;
  OperatingSystem& operator=(const OperatingSystem&) = delete;
  virtual ~OperatingSystem() = default;
  // Rings the timers of the process at `when`.
  virtual void ring_at(Process& process, Picos when) = 0;
  // Ends the wait of the thread of this id, which has got a signal.
  virtual void interrupt(const Process& process, int thread) = 0;
  // Cleans up at `when` after the process of this id, if it has ended.
  virtual void bury_at(int process, Picos when) = 0;
  // When the end of the process can be seen: the time that bury_at() has named; 0 if it has not.
  virtual Picos end_of(int process) = 0;
  // The operating system has delivered the signal to the process: if it has a handler, the wait of a thread ends.
  virtual void tell(int process, int signal) = 0;
  // The same for SIGCHLD and the parent of the process, which has ended.
  virtual void tell_parent(int process) = 0;
  // The id of the process of this number; none if it has ended.
  virtual std::optional<int> id_of(int number) const = 0;
  // True if no other thread has been on its node.
  virtual bool alone(const ProgramThread& thread) const = 0;
  // The threads in await_memory, which see what other threads of their node write without a call.
  virtual std::vector<ProgramThread*>& watchers() = 0;
};

class ProgramThread {
 public:
  ProgramThread(Channel& channel, Process& process, OperatingSystem& system, Station& station, Outside& outside,
                Silences& silences)
      : channel_(channel),
        process_(process),
        system_(system),
        station_(station),
        outside_(outside),
        silences_(silences) {}
  ProgramThread(const ProgramThread&) = delete;
  ProgramThread& operator=(const ProgramThread&) = delete;

  // The body of the simulated thread: until the program's thread ends. Begins at `start`.
  void run(SimNode& node, Picos start);

  const Process& process() const { return process_; }
  const Channel& channel() const { return channel_; }
  bool ended() const { return ended_; }

  // From outside of the simulated thread. True if it works without calls, and was not proven to watch memory.
  bool silent() const { return where_ == Where::silent; }
  // Goes on if the program's thread has come back meanwhile, or a signal handler has interrupted it.
  bool returns();
  // Its program raises the signal as soon as it goes on. A wait ends, unless the thread blocks the signal.
  void send(const Signal& signal);
  bool blocks(int signal) const { return (channel_.blocked_signals.load() >> (signal - 1) & 1) != 0; }
  // Its wait ends, as by a signal.
  void interrupt();
  // It sleeps until a signal is pending.
  bool awaits_signals() const { return where_ == Where::signals; }
  // It has told that it spins, but nothing happens any more: it spins on, and is waited for as if it had not told.
  void let_spin();
  // Its process has ended.
  void end();

 private:
  enum class Where {
    here,      // it has the turn, or a request of it is executed
    silent,    // it works without calls
    watching,  // it has told that it spins until memory is written
    blocked,   // it sleeps in the operating system
    asleep,    // it has asked to sleep, or to wait for another thread or something outside of the simulation
    signals    // it has asked to wait for a signal
  };

  void tell_watchers();
  // Until the program's thread asks. False if it is gone.
  bool next_request(SimNode& node);
  // Executes the request in the channel. False if the thread has ended.
  bool answer(SimNode& node);
  // The program's thread is gone. If this was the end of its process, others may see it.
  void tell_end(const SimNode& node);
  int execute_own(Operation operation, SimNode& node, Reader& in, Writer& out);
  // Until the deadline, the end of the sleep, or a signal.
  void sleep(SimNode& node, Picos until, Where where);
  Loops loops();
  bool may_be_silent() const;
  int await_reaction(SimNode& node, int process, int signal);
  int await_memory(const SimNode& node);
  int wait_on(SimNode& node, Reader& in);
  int wait_outside(SimNode& node, Reader& in, Writer& out);
  void tell_of_outside(SimNode& node, Writer& out) const;
  int set_timer(SimNode& node, const TimerSettings& settings, Writer& out);
  void hand_over_signals();

  Channel& channel_;
  Process& process_;
  OperatingSystem& system_;
  Station& station_;
  Outside& outside_;
  Silences& silences_;
  std::uint64_t loop_ = 0;  // in which the program's thread was at its last request; 0: none
  sim::SimThread* thread_ = nullptr;
  Where where_ = Where::here;
  bool ended_ = false;
  bool begun_ = false;
  bool lets_spin_ = false;
  bool interrupted_ = false;    // the request that is executed waits no longer
  std::deque<Signal> signals_;  // not yet handed over
  std::vector<const ibv_cq*> empty_;
  Requests requests_;
};

}  // namespace verbscope::simulate
