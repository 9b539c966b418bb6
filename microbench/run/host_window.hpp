// The measured window of one node on a host: from its begin to its end the clock, the CPU time of the process, its
// threads' armings and the counters of its collector are read.
#pragma once

#include "common/clock.hpp"
#include "counters/collector.hpp"
#include "microbench/run/node_run.hpp"

namespace verbscope {

class HostWindow {
 public:
  HostWindow(const NodeRun& node, Collector& collector) : node_(node), collector_(collector) {}

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
  const WindowUse& use() const { return use_; }

 private:
  const NodeRun& node_;
  Collector& collector_;
  Picos begin_{0};
  WindowUse use_;
};

}  // namespace verbscope
