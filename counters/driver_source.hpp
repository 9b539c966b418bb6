// Requests and completions of this process, counted inside the driver by drivers_patch/. The source counts requests and
// computes their PCIe cost.
#pragma once

#include <array>

#include "counters/source.hpp"
#include "drivers_patch/summary.hpp"

namespace verbscope {

// Precondition of start(): the process's contexts are attached.
class DriverSource final : public CounterSource {
 public:
  std::string name() const override { return "driver"; }
  void start() override;
  void read(Moment moment) override;
  CounterReport report(double ops_per_s) override;

 private:
  struct Reading {
    Picos time{0};
    driver::Sums sums;
  };
  const Reading& at(Moment moment) const { return readings_[static_cast<std::size_t>(moment)]; }

  std::array<Reading, kMoments> readings_;
};

}  // namespace verbscope
