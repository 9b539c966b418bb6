// What a thread of a program may ask of the simulator (Operation), executed by the simulated thread that stands for it.
#pragma once

#include <vector>

#include "nic_sim/host/sim_node.hpp"
#include "simulate/channel/message.hpp"
#include "simulate/server/outside.hpp"
#include "simulate/server/process.hpp"

namespace verbscope::simulate {

// The lists of a request, kept by its thread for their memory: a thread that posts may be suspended meanwhile.
struct Requests {
  std::vector<ibv_send_wr> sends;
  std::vector<ibv_recv_wr> recvs;
  std::vector<ibv_sge> sges;
  std::vector<ibv_wc> completions;
  std::vector<std::byte> results;
};

struct Call {
  Process& process;
  SimNode& node;
  Outside& outside;
  // The completion queues that the thread has found empty since it last did something else.
  std::vector<const ibv_cq*>& empty;
  Requests& requests;
  const bool& interrupted;  // a wait of the thread ends
  Reader& in;
  Writer& out;
};

// Executes an operation of verbs. Returns its errno. Results go to `out`, after which nothing is added on errors, but
// for the number of requests that were posted.
int execute(Operation operation, const Call& call);

// Parts of execute().
int execute_control(Operation operation, const Call& call);
int execute_data(Operation operation, const Call& call);

// Shows events by a file descriptor of the program, which the events own. Those who wait for it look again.
inline void show_by(const Call& call, auto& events, int fd) {
  events.show_by(fd, [&outside = call.outside](Picos when) { outside.notify(when); });
}

}  // namespace verbscope::simulate
