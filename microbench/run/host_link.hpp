// The link of nodes on machines of their own: each process has one node, exchanges messages with the others by TCP, and
// waits in real time. On the fabrics null and host the server has no peers.
//
//   server                                   client i
//      | <------------ endpoints -------------- |
//      | ------------- endpoints -------------> |   both connect; with Topology::qps_per_pair those of all machines
//      | <-------------- ready ---------------- |
//      | --------------- go ------------------> |   both start their threads
//      | --------- phase {measure} -----------> |   each phase is repeated every second until the next
//      | <----- progress {noted, rates} ------- |   only if the clients' intervals make the rate: when all threads
//      |                                        |   have noted the phase, with --iters every second until they end
//      | --------- phase {halved} ------------> |   not with --iters
//      | --------- phase {closed} ------------> |   then measure again, if the rate was not steady
//      | ---------- phase {stop} -------------> |   the side that sends drains
//      | <-- sent {messages} -- and -- sent --> |   the side that receives waits for this many
//      | <------------- result ---------------- |
//      | --------------- bye -----------------> |
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "common/clock.hpp"
#include "counters/collector.hpp"
#include "exchange/exchange.hpp"
#include "microbench/run/fabric.hpp"
#include "microbench/run/rate_check.hpp"
#include "microbench/run/thread_group.hpp"

namespace verbscope {

// The node of this process; everything must outlive the link.
struct HostSide {
  NodeRun& node;
  const Plan& plan;
  std::vector<Channel>& peers;  // of a server its clients, of a client the server
  const RunCores& cores;
  Collector& collector;
};

// The server sets the phases.
std::unique_ptr<Link> make_server_link(const HostSide& side);
// A client follows the phases of the server.
std::unique_ptr<Link> make_client_link(const HostSide& side);

// The measured interval of one node on a host: the clock, the CPU time of the process, the armings of its threads and
// the counters of its collector, from its begin to its end.
class HostInterval {
 public:
  HostInterval(const NodeRun& node, Collector& collector) : node_(node), collector_(collector) {}

  void begin() {
    collector_.begin_window();
    begin_ = TscClock::now();
    use_.cpu = process_cpu();
    use_.armed = node_.threads().armed();
  }

  void end() {
    use_.time = TscClock::now() - begin_;
    use_.cpu = process_cpu() - use_.cpu;
    use_.armed = node_.threads().armed() - use_.armed;
    collector_.end_window();
  }

  // After the end.
  const IntervalUse& use() const { return use_; }

 private:
  const NodeRun& node_;
  Collector& collector_;
  Picos begin_{0};
  IntervalUse use_;
};

// The part that server and client share: the threads, the interval and the report of the node here.
class HostLink : public Link {
 public:
  explicit HostLink(const HostSide& side)
      : side_(side),
        threads_(side.node, side.peers, side.cores, side.plan.schedule.timeout),
        steadiness_(side.plan.schedule),
        interval_(side.node, side.collector) {}

  void run(const std::function<void()>& phases) override { phases(); }
  void start() override {
    start_ = TscClock::now();
    threads_.start();
    side_.collector.attach(threads_.thread_ids());
  }
  void begin_interval() override {
    steadiness_.begin(time());
    interval_.begin();
  }
  void end_interval() override { interval_.end(); }
  void turn(Phase phase) override { threads_.turn(phase); }
  void end_threads() override { threads_.end_threads(); }

 protected:
  // Time since the start of the threads.
  Picos time() const { return TscClock::now() - start_; }
  // Waits until the threads here, which make the rate, have noted `phase`, or no time is left.
  void wait_noted(Phase phase, const std::string& what, bool silent) {
    const NodeThreads& threads = side_.node.threads();
    const Schedule& schedule = side_.plan.schedule;
    const bool limited = !schedule.threads_end_it;
    const auto late = [&] { return limited && steadiness_.late(time()); };
    threads_.wait_until(
        what, silent, [&] { return threads.intervals_noted(phase) || late(); },
        limited ? start_ + std::min(schedule.longest, Picos::max() - start_) : Picos::max());
    if (!threads.intervals_noted(phase)) steadiness_.give_up();
  }

  NodeReport own_report(std::string& failure) const {
    return side_.node.report(interval_.use(), expected_, side_.cores.threads(), failure);
  }

  HostSide side_;
  ThreadGroup threads_;
  Steadiness steadiness_;
  std::uint64_t expected_ = 0;  // messages that the peers have sent to this node

 private:
  HostInterval interval_;
  Picos start_{0};
};

}  // namespace verbscope
