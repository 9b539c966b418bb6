// A simulated cluster whose nodes run programs of the operating system.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <stop_token>
#include <vector>

#include "nic_sim/cluster.hpp"
#include "simulate/channel/channel.hpp"
#include "simulate/server/connection_manager.hpp"
#include "simulate/server/outside.hpp"
#include "simulate/server/process.hpp"
#include "simulate/server/program_thread.hpp"
#include "simulate/server/station.hpp"

namespace verbscope::simulate {

struct SimulationOptions {
  int nodes = 2;
  std::uint64_t seed = 1;
  Picos start_gap{100'000'000'000};  // of virtual time, between the starts of one node's programs and the next's
  // CPU time of a thread without a call, after which it counts as silent although it was not proven to spin. Interrupts
  // and the host of a virtual machine were seen to take 190 us of a thread's CPU time at once.
  std::int64_t silence_ns = 2'000'000;
};

class Simulation final : public OperatingSystem {
 public:
  // `memory`: shared with the programs. `stop` ends run(). `look` is called between events of the simulation, `leave`
  // with the number of a node whose program has run, before that of another process goes on.
  Simulation(SharedMemory& memory, const Profile& profile, const SimulationOptions& options, std::stop_token stop,
             std::function<void()> look, std::function<void(int)> leave);
  ~Simulation() override;
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;

  // Until all programs have ended. `launched`: the processes that were started, which begin by themselves.
  void run(const std::vector<pid_t>& launched);

  SimCluster& cluster() { return cluster_; }
  const Silences& silences() const { return silences_; }
  // Virtual time so far, picoseconds. Thread-safe.
  std::int64_t now_ps() const { return now_ps_.load(std::memory_order_relaxed); }

 private:
  bool ask(bool stuck);
  // Waits until each of the processes has begun, or has ended without.
  void await(const std::vector<pid_t>& launched);
  // Takes in threads that have come. True if any has.
  bool admit();
  void admit(std::size_t channel);
  Picos start_of(const Channel& channel);
  Process& process_of(const Channel& channel);
  // Null if it takes no part.
  Process* find_process(int id);
  // Lets threads go on that have come back. True if any has.
  bool let_return();
  // Cleans up after processes that have ended. True if any has.
  bool bury();
  void bury_at(int process, Picos when) override;
  Picos end_of(int process) override;
  void tell(int process, int signal) override;
  void tell_parent(int process) override;
  // Timers and signals.
  void ring_at(Process& process, Picos when) override;
  void ring(Process& process);
  // The first thread of the process that gets such a signal; `thread`: only this one, or 0. Null: none does.
  ProgramThread* receiver_of(const Process& process, int signal, int thread);
  void send(const Process& process, const Signal& signal, int thread);
  void interrupt(const Process& process, int thread) override;
  std::optional<int> id_of(int number) const override;
  bool alone(const ProgramThread& thread) const override {
    return threads_of_node_[static_cast<std::size_t>(thread.process().node())] == 1;
  }
  std::vector<ProgramThread*>& watchers() override { return watchers_; }
  // Nothing else happens: lets the watchers spin on, as if they had not told. True if there are any.
  bool let_watchers_spin();
  bool about_to_jump();
  bool any_silent() const;
  // False: no process is left, and the simulation ends with its last thread.
  void expect_processes(bool any_alive);

  SharedMemory& memory_;
  Picos wakeup_;  // HostProfile::event_wakeup
  std::vector<pid_t> launched_;
  SimulationOptions options_;
  SimCluster cluster_;
  ConnectionManager connections_;
  std::vector<int> threads_of_node_;  // so far
  Station station_;
  Outside outside_;
  Silences silences_;
  std::deque<std::unique_ptr<Process>> processes_;
  std::deque<std::unique_ptr<ProgramThread>> threads_;
  std::array<ProgramThread*, kMaxThreads> of_channel_{};
  std::vector<ProgramThread*> watchers_;
  std::vector<std::uint32_t> begun_;  // nodes whose first program has begun
  std::uint64_t asked_ = 0;
  bool any_alive_ = true;
  std::function<void()> look_;
  std::atomic<std::int64_t> now_ps_ = 0;
};

}  // namespace verbscope::simulate
