// The steps of a run on a host, from "everybody is connected" to the result. Both sides go through them together, by
// messages; what goes wrong is thrown as an Error.
#pragma once

#include <vector>

#include "exchange/exchange.hpp"
#include "microbench/bench/plan.hpp"
#include "microbench/run/host_counters.hpp"
#include "microbench/run/outcome.hpp"
#include "microbench/run/role.hpp"

namespace verbscope {

struct HostSide {
  Role& role;
  const Plan& plan;
  std::vector<Channel>& peers;
  const std::vector<int>& cores;
  Collector& collector;
};

// Of the side under test. With `clients_may_leave` a client that dies is counted, and the others go on.
void run_server_steps(const HostSide& side, bool clients_may_leave, Outcome& outcome);

void run_client_steps(const HostSide& side, Outcome& outcome);

}  // namespace verbscope
