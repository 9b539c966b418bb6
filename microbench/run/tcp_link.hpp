// The link of nodes on machines of their own: one process has one node, hears from the others by TCP, and waits in real
// time. The null device is a server without peers.
//
//   server                                   client i
//      | <------------ endpoints -------------- |
//      | ------------- endpoints -------------> |   both connect; with Topology::qps_per_pair those of all machines
//      | <-------------- ready ---------------- |
//      | --------------- go ------------------> |   both start their threads
//      | --------- phase {measure} -----------> |   each phase is said again each second until the next
//      | <----- progress {noted, rates} ------- |   only when the clients' windows make the rate: when all threads
//      |                                        |   have noted the phase, with --iters each second until they end
//      | --------- phase {halved} ------------> |   not with --iters
//      | --------- phase {closed} ------------> |   then measure again, where the rate was not steady
//      | ---------- phase {stop} -------------> |   who sends drains
//      | <-- sent {messages} -- and -- sent --> |   who receives waits for so many
//      | <------------- result ---------------- |
//      | --------------- bye -----------------> |
#pragma once

#include <memory>
#include <vector>

#include "counters/collector.hpp"
#include "exchange/exchange.hpp"
#include "microbench/bench/plan.hpp"
#include "microbench/run/node_run.hpp"
#include "microbench/run/phase_machine.hpp"
#include "microbench/run/run_cores.hpp"

namespace verbscope {

// The node of this process; everything must outlive the link.
struct HostSide {
  NodeRun& node;
  const Plan& plan;
  std::vector<Channel>& peers;  // a server's are its clients, a client's is the server
  const RunCores& cores;
  Collector& collector;
};

// The server turns the phases. With `clients_may_leave` a client that dies is counted, and the others go on.
std::unique_ptr<Link> make_server_link(const HostSide& side, bool clients_may_leave);

// A client follows the phases that the server tells.
std::unique_ptr<Link> make_client_link(const HostSide& side);

}  // namespace verbscope
