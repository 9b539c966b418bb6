// What this process posted and polled, as drivers_patch/ counts it inside: a source that sees requests, and reckons
// from them what they cost on PCIe.
#pragma once

#include <array>

#include "counters/source.hpp"
#include "drivers_patch/summary.hpp"

namespace verbscope {

// The process's contexts are attached before it starts.
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
