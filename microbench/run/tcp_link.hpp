// The link of nodes on machines of their own: one process has one node, hears from the others by TCP, and waits in real
// time. The null device is a server without peers.
//
//   server                                   client i
//      | <------------ endpoints -------------- |
//      | ------------- endpoints -------------> |   both connect
//      | <-------------- ready ---------------- |
//      | --------------- go ------------------> |   both start their threads
//      | --------- phase {measure} -----------> |
//      | <----- progress {opened, closed} ----- |   only when the clients' windows make the rate: when all threads
//      |                                        |   have begun to measure, with --iters each second until they end
//      | ---------- phase {stop} -------------> |   who sends drains; said each second until then
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

namespace verbscope {

// The node of this process; everything must outlive the link.
struct HostSide {
  NodeRun& node;
  const Plan& plan;
  std::vector<Channel>& peers;  // a server's are its clients, a client's is the server
  const std::vector<int>& cores;
  Collector& collector;
};

// The server turns the phases. With `clients_may_leave` a client that dies is counted, and the others go on.
std::unique_ptr<Link> make_server_link(const HostSide& side, bool clients_may_leave);

// A client follows the phases that the server tells.
std::unique_ptr<Link> make_client_link(const HostSide& side);

}  // namespace verbscope
