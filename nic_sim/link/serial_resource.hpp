// A resource with one user at a time: a direction of a PCIe link, a port.
#pragma once

#include "common/units.hpp"

namespace verbscope::sim {

// Serves users in the order of their calls.
class SerialResource {
 public:
  // Occupies it for `duration`, starting at `now` or when it becomes free. Returns the end.
  Picos take(Picos now, Picos duration) {
    free_at_ = (now > free_at_ ? now : free_at_) + duration;
    busy_ += duration;
    return free_at_;
  }
  Picos free_at() const { return free_at_; }
  // The time that it was in use until `now`.
  Picos busy(Picos now) const { return free_at_ > now ? busy_ - (free_at_ - now) : busy_; }

 private:
  Picos free_at_{0};
  Picos busy_{0};
};

}  // namespace verbscope::sim
