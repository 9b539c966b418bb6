// The half of a link by TCP that server and client share: the threads, the window and the report of the node here.
#pragma once

#include "microbench/run/conductor.hpp"
#include "microbench/run/host_window.hpp"
#include "microbench/run/tcp_link.hpp"

namespace verbscope {

class HostLink : public Link {
 public:
  explicit HostLink(const HostSide& side)
      : side_(side),
        conductor_(side.node, side.peers, side.cores, side.plan.schedule.timeout),
        window_(side.node, side.collector) {}

  void start() override {
    conductor_.start();
    side_.collector.attach(conductor_.thread_ids());
  }
  void await(Step step, std::function<void()> then) override {
    wait(step);
    then();
  }
  void begin_window() override { window_.begin(); }
  void end_window() override { window_.end(); }
  void turn(Phase phase) override { conductor_.turn(phase); }
  void end_threads() override { conductor_.end_threads(); }

 protected:
  virtual void wait(Step step) = 0;

  NodeReport own_report(std::string& failure) const {
    return side_.node.report(window_.use(), expected_, side_.cores, failure);
  }

  HostSide side_;
  Conductor conductor_;
  std::uint64_t expected_ = 0;  // messages that the peers have sent to this node

 private:
  HostWindow window_;
};

}  // namespace verbscope
