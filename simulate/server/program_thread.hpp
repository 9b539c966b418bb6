// A thread of a program, and the simulated thread that stands for it: it takes the thread's requests one by one.
#pragma once

#include <cstdint>
#include <vector>

#include "nic_sim/host/sim_node.hpp"
#include "simulate/channel/channel.hpp"
#include "simulate/server/calls.hpp"
#include "simulate/server/process.hpp"
#include "simulate/server/station.hpp"

namespace verbscope::simulate {

// What the programs did that a simulation cannot time.
struct Silences {
  std::uint64_t silent = 0;   // times that a thread worked without calls, and was taken for one that watches memory
  std::uint64_t blocked = 0;  // times that a thread slept in the operating system, while others went on
};

class ProgramThread {
 public:
  ProgramThread(Channel& channel, Process& process, Station& station, Silences& silences)
      : channel_(channel), process_(process), station_(station), silences_(silences) {}
  ProgramThread(const ProgramThread&) = delete;
  ProgramThread& operator=(const ProgramThread&) = delete;

  // The body of the simulated thread: until the program's thread ends. Begins `delay` after its start.
  void run(SimNode& node, Picos delay);

  const Process& process() const { return process_; }
  const Channel& channel() const { return channel_; }
  bool ended() const { return ended_; }

  // From outside of the simulated thread. True if it waits outside of the simulation, for something that `news` may be.
  bool waits_outside() const { return where_ == Where::outside; }
  // It may look again whether what it waits for has come.
  void look_again();
  // Goes on if the program's thread has come back meanwhile, or is gone.
  bool returns();
  // Its process has ended.
  void end();

 private:
  enum class Where {
    here,     // it has the turn, or a request of it is executed
    silent,   // it works without calls
    blocked,  // it sleeps in the operating system
    outside   // it has asked to wait for something outside of the simulation
  };

  // Until the program's thread asks. False if it is gone.
  bool next_request(SimNode& node);
  // Executes the request in the channel. False if the thread has ended.
  bool answer(SimNode& node);
  int execute_own(Operation operation, SimNode& node, Reader& in, Writer& out);
  void sleep(SimNode& node, Picos until, Where where);
  void ring(SimNode& node);

  Channel& channel_;
  Process& process_;
  Station& station_;
  Silences& silences_;
  sim::SimThread* thread_ = nullptr;
  Where where_ = Where::here;
  bool ended_ = false;
  std::vector<const ibv_cq*> empty_;
  Requests requests_;
};

}  // namespace verbscope::simulate
