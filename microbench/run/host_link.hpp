// The half of a link by TCP that server and client share: the threads, the windows and the report of the node here.
#pragma once

#include <algorithm>

#include "microbench/run/host_window.hpp"
#include "microbench/run/steadiness.hpp"
#include "microbench/run/tcp_link.hpp"
#include "microbench/run/thread_group.hpp"

namespace verbscope {

class HostLink : public Link {
 public:
  explicit HostLink(const HostSide& side)
      : side_(side),
        threads_(side.node, side.peers, side.cores, side.plan.schedule.timeout),
        steadiness_(side.plan.schedule),
        window_(side.node, side.collector) {}

  void start() override {
    start_ = TscClock::now();
    threads_.start();
    side_.collector.attach(threads_.thread_ids());
  }
  void await(Step step, std::function<void()> then) override {
    wait(step);
    then();
  }
  void begin_window() override {
    steadiness_.begin(time());
    window_.begin();
  }
  void end_window() override { window_.end(); }
  void turn(Phase phase) override { threads_.turn(phase); }
  void end_threads() override { threads_.end_threads(); }

 protected:
  virtual void wait(Step step) = 0;

  // Since the threads have started.
  Picos time() const { return TscClock::now() - start_; }
  // Until the threads here, whose windows make the rate, have noted the turn to `phase`, or there is no time left.
  void await_noted(Phase phase, const std::string& what, bool silent) {
    const NodeThreads& threads = side_.node.threads();
    const Schedule& schedule = side_.plan.schedule;
    const bool limited = !schedule.threads_end_it;
    const auto late = [&] { return limited && steadiness_.late(time()); };
    threads_.wait_until(
        what, silent, [&] { return threads.windows_noted(phase) || late(); },
        limited ? start_ + std::min(schedule.longest, Picos::max() - start_) : Picos::max());
    if (!threads.windows_noted(phase)) steadiness_.give_up();
  }

  NodeReport own_report(std::string& failure) const {
    return side_.node.report(window_.use(), expected_, side_.cores.threads(), failure);
  }

  HostSide side_;
  ThreadGroup threads_;
  Steadiness steadiness_;
  std::uint64_t expected_ = 0;  // messages that the peers have sent to this node

 private:
  HostWindow window_;
  Picos start_{0};
};

}  // namespace verbscope
