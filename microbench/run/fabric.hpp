// Where a point runs, and the order of its events, which is the same on every fabric: the nodes connect and start, warm
// up, measure, stop and drain. A fabric of devices waits in real time (host_fabric.hpp), a simulated one in virtual
// time (sim_fabric.hpp).
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "machine/phase.hpp"
#include "microbench/bench/benchmark.hpp"
#include "microbench/run/node_run.hpp"
#include "microbench/run/report.hpp"

namespace verbscope {

// The waits of a point, in their order.
enum class Step : std::uint8_t {
  warm_up,      // until the warm-up is over
  open,         // until the threads that make the rate have noted the begin of the interval
  first_half,   // until half the duration is over
  halve,        // until these threads have noted that
  second_half,  // until the duration is over, or the threads have ended the interval
  close,        // until these threads have noted its end
  end,          // until the threads that drive the traffic have their last completions
  drain,        // until every message has arrived, or none has arrived for a while
};

// The nodes of this process, their threads, and their link with the nodes of other processes. A link in real time
// throws Error when a wait times out.
class Link {
 public:
  virtual ~Link() = default;

  // Runs `phases`, which calls the functions below.
  virtual void run(const std::function<void()>& phases) = 0;

  // Exchanges endpoints; the nodes here connect.
  virtual void connect() = 0;
  // Waits until every peer is ready to start.
  virtual void gather() = 0;
  // Starts the threads here; they warm up.
  virtual void start() = 0;
  // Waits until `step` is over. Returns false if the point has run out of time before the interval was closed.
  virtual bool wait(Step step) = 0;
  // Reads the clock and the counters.
  virtual void begin_interval() = 0;
  virtual void end_interval() = 0;
  // Sets the phase of the threads here, and of those of the peers.
  virtual void turn(Phase phase) = 0;
  // After Step::close: returns true if the rate was not steady and there is time for another interval.
  virtual bool goes_on() = 0;
  // Ends the threads here, whether they have all messages or not.
  virtual void end_threads() = 0;

  // After run(): the reports of the nodes. Sets `failure`, if it is empty, to the failure of a node here.
  virtual PointReports collect(std::string& failure) = 0;
};

// The phases of a point, from the connection to the end of the threads. `own`: the node under test, or the only node of
// this process.
void run_phases(const NodeRun& own, Link& link);

// Runs one point.
class Fabric {
 public:
  explicit Fabric(Benchmark& benchmark) : benchmark_(benchmark) {}
  Fabric(const Fabric&) = delete;
  Fabric& operator=(const Fabric&) = delete;
  virtual ~Fabric() = default;

  // Call once. Throws Error.
  Outcome run();

 protected:
  Benchmark& benchmark() const { return benchmark_; }

  // run() calls these in this order: the plan that all machines agree on; the nodes of this process and their link.
  virtual Plan make_plan() = 0;
  virtual Link& open(const Plan& plan, Outcome& outcome) = 0;
  virtual NodeRun& own_node() = 0;
  // After the run, with outcome.result in place: counters, environment, checks of the rate, and the prediction.
  virtual void complete(const Plan& plan, const NodeReport& own, Outcome& outcome) = 0;
  // The rate is checked against the bounds of the model: the hardware is what the model assumes.
  virtual bool has_model_hardware() const { return false; }
  // Sends the reason to the peers, which then fail too.
  virtual void send_failure(const std::string&) {}

 private:
  Benchmark& benchmark_;
};

}  // namespace verbscope
