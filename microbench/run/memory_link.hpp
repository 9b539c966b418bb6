// The link of simulated nodes: all are in this process, endpoints and phases cross in memory, and time is virtual.
// Every wait is an appointment with the cluster, so that SimCluster::run plays the point. A node that fails, or a
// cluster in which nothing moves any more, ends the waits and throws nothing: there is a result all the same.
#pragma once

#include <deque>

#include "microbench/bench/control.hpp"
#include "microbench/run/phase_machine.hpp"
#include "microbench/run/sim_window.hpp"
#include "microbench/run/slow_run.hpp"
#include "microbench/run/steadiness.hpp"
#include "nic_sim/cluster.hpp"

namespace verbscope {

class MemoryLink final : public Link {
 public:
  // Node i of the cluster runs nodes[i], of which the first is the server. All must outlive the link.
  // `counted`: the counter of the adapters that counts the operations.
  MemoryLink(SimCluster& cluster, std::deque<NodeRun>& nodes, const Schedule& schedule,
             std::optional<OperationCount> counted, SlowRun& slow)
      : cluster_(cluster),
        nodes_(nodes),
        schedule_(schedule),
        counted_(std::move(counted)),
        slow_(slow),
        window_(cluster, nodes),
        steadiness_(schedule) {}

  void connect() override;
  void gather() override {}  // nobody is elsewhere
  void start() override;
  void await(Step step, std::function<void()> then) override;
  void begin_window() override;
  void end_window() override { window_.end(); }
  void turn(Phase phase) override { server_.phase = phase; }
  void turn_peers(Phase phase) override { clients_.phase = phase; }
  bool goes_on() override;
  bool gave_up() const override { return steadiness_.gave_up(); }
  void end_threads() override {
    server_.quit = true;
    clients_.quit = true;
  }
  // After SimCluster::run.
  PointReports collect(std::string& failure) override;

  const SimWindow& window() const { return window_; }

 private:
  void foretell();
  void look(Step step, std::function<void()> then);
  void look_later(Step step, std::function<void()> then);
  bool over(Step step);
  bool windows_noted(Phase phase) const;
  void appoint(Picos when, std::function<void()> then);
  bool active_ended() const;
  bool everything_arrived() const;
  bool failed();
  bool stalled(Picos limit);

  SimCluster& cluster_;
  std::deque<NodeRun>& nodes_;
  const Schedule& schedule_;
  std::optional<OperationCount> counted_;
  SlowRun& slow_;
  SimWindow window_;
  Steadiness steadiness_;
  Picos begin_{0};  // of the window
  RunControl server_, clients_;
  Picos moved_at_{0};
  std::uint64_t seen_ = 0;  // operations completed by then
  std::string failure_;
};

}  // namespace verbscope
