// The link of simulated nodes: all are in this process, endpoints and phases are passed in memory, and time is virtual.
// The phases run as a fiber beside the simulated threads. If a node fails, or nothing completes any more, the waits end
// without an exception, and the point still has a result.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <string>
#include <thread>

#include "microbench/bench/control.hpp"
#include "microbench/run/fabric.hpp"
#include "microbench/run/rate_check.hpp"
#include "microbench/run/sim_interval.hpp"
#include "nic_sim/cluster.hpp"

namespace verbscope {

// Prints the current activity of a run to standard error, if it takes more than a few seconds of real time.
class SlowRunNotice {
 public:
  // `activity`: "the warm-up".
  explicit SlowRunNotice(std::string activity);

  void set(std::string activity);

 private:
  void print_until(const std::stop_token& stop);

  std::mutex mutex_;
  std::condition_variable_any woken_;
  std::string activity_;
  std::jthread thread_;  // the last member: it uses the others
};

class SimLink final : public Link {
 public:
  // Node i of the cluster runs nodes[i], of which the first is the server. All must outlive the link.
  // `counted`: the counter of the adapters that counts the operations.
  SimLink(SimCluster& cluster, std::deque<NodeRun>& nodes, const Schedule& schedule,
          std::optional<OperationCount> counted, SlowRunNotice& notice);

  void run(const std::function<void()>& phases) override { cluster_.run(phases); }
  void connect() override;
  void gather() override {}  // no node is in another process
  void start() override;
  bool wait(Step step) override;
  void begin_interval() override;
  void end_interval() override { interval_.end(); }
  void turn(Phase phase) override;
  bool goes_on() override;
  void end_threads() override;
  PointReports collect(std::string& failure) override;

  const SimInterval& interval() const { return interval_; }

 private:
  void announce_long_run();
  void poll(Step step);
  bool over(Step step);
  bool intervals_noted(Phase phase) const;
  void wait_until(Picos when);
  bool active_ended() const;
  bool everything_arrived() const;
  bool failed();
  bool stalled(Picos limit);

  SimCluster& cluster_;
  std::deque<NodeRun>& nodes_;
  const Schedule& schedule_;
  std::optional<OperationCount> counted_;
  SlowRunNotice& notice_;
  SimInterval interval_;
  Steadiness steadiness_;
  Picos begin_{0};  // of the interval
  RunControl server_, clients_;
  Picos moved_at_{0};
  std::uint64_t completed_ = 0;  // operations completed by then
  std::string failure_;
};

}  // namespace verbscope
