// The one order of events of a point, the same on every fabric: every node connects and starts, warms up, measures,
// stops and drains. A link carries it: TCP in real time (tcp_link.hpp), memory in virtual time (memory_link.hpp).
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "machine/phase.hpp"
#include "microbench/run/node_run.hpp"
#include "microbench/run/report.hpp"

namespace verbscope {

// The waits of a point, in their order; what follows each is in PhaseMachine.
enum class Step : std::uint8_t {
  warm_up,      // until the warm-up is over
  open,         // until the threads whose windows make the rate have noted its begin
  first_half,   // until half the duration is over
  halve,        // until those threads have noted that
  second_half,  // until the duration is over, or the threads have ended their windows
  close,        // until those threads have noted the end of their window
  end,          // until the threads that drive the traffic have their last completions
  drain,        // until every message has come, or none has come for a while
};

// The nodes of a point and the time that passes for them, as one process sees them: it has threads of its own (of one
// node, or simulated of all), and peers. A link of real time throws Error when a wait is in vain.
class Link {
 public:
  virtual ~Link() = default;

  // Endpoints cross; the nodes here connect.
  virtual void connect() = 0;
  // Until every peer is ready to start.
  virtual void gather() = 0;
  // The threads here begin to warm up.
  virtual void start() = 0;
  // Calls `then` when `step` is over: before it returns, or at some virtual time.
  virtual void await(Step step, std::function<void()> then) = 0;
  // The counters of the measured window are read.
  virtual void begin_window() = 0;
  virtual void end_window() = 0;
  // Tells a phase to the threads of this side, or to those of the peers.
  virtual void turn(Phase phase) = 0;
  virtual void turn_peers(Phase phase) = 0;
  // After Step::close: whether the rate was not steady, and there is time for another window.
  virtual bool goes_on() = 0;
  // Whether the last wait ended in vain, because the point has had all the time that it may take.
  virtual bool gave_up() const = 0;
  // The threads here come to their end, whether they have all messages or not.
  virtual void end_threads() = 0;
  // After that: the reports of the nodes. Sets `failure`, when it is empty, to what the nodes here suffered.
  virtual PointReports collect(std::string& failure) = 0;
};

class PhaseMachine {
 public:
  // `own` is the node under test, or the one node that this process has. Both must outlive the machine.
  PhaseMachine(const NodeRun& own, Link& link) : own_(own), link_(link) {}

  // From the connection to the end of the threads. In real time all is over when it returns; in virtual time the
  // appointments of the link do the rest.
  void run();

 private:
  void await(Step step);
  void over(Step step);
  void turn(Phase phase);
  void measure();
  void stop();

  const NodeRun& own_;
  Link& link_;
};

}  // namespace verbscope
