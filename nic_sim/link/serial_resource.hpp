// A resource that serves one user at a time: a direction of a PCIe link, a port.
#pragma once

#include "common/units.hpp"

namespace verbscope::sim {

// It serves in the order of asking.
class SerialResource {
 public:
  // Occupies it for `duration` from `now` or from when it is free; yields the end.
  Picos take(Picos now, Picos duration) {
    free_at_ = (now > free_at_ ? now : free_at_) + duration;
    busy_ += duration;
    return free_at_;
  }
  Picos free_at() const { return free_at_; }
  // How long it has been in use up to `now`.
  Picos busy(Picos now) const { return free_at_ > now ? busy_ - (free_at_ - now) : busy_; }

 private:
  Picos free_at_{0};
  Picos busy_{0};
};

}  // namespace verbscope::sim
