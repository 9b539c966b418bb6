// The measured window of one side on a host: what its counters, the clock, the CPU time of the process and its threads'
// armings say when it begins and when it ends.
#pragma once

#include "common/clock.hpp"
#include "microbench/run/outcome.hpp"
#include "microbench/run/role.hpp"

namespace verbscope {

class HostWindow {
 public:
  HostWindow(const Role& role, Collector& collector) : role_(role), collector_(collector) {}

  void begin() {
    collector_.begin_window();
    begin_ = TscClock::now();
    cpu_ = process_cpu();
    armed_ = role_.armed();
  }

  void end() {
    time_ = TscClock::now() - begin_;
    cpu_ = process_cpu() - cpu_;
    armed_ = role_.armed() - armed_;
    collector_.end_window();
  }

  // After the end.
  Picos time() const { return time_; }
  void put_use(Json& result) const {
    result["cpu"] = cpu_json(cpu_, time_);
    if (role_.plan().operation.events) result["cq_armings"] = armed_;
  }

 private:
  const Role& role_;
  Collector& collector_;
  Picos begin_{0}, time_{0};
  CpuSeconds cpu_;
  std::uint64_t armed_ = 0;
};

}  // namespace verbscope
