// How long each spin lock of one node was had so far, with its coming over from thread to thread.
#pragma once

#include <deque>
#include <vector>

#include "common/units.hpp"

namespace verbscope::sim {

class LockTimes {
 public:
  // The time of one more lock, which adds to it.
  Picos& add() { return times_.emplace_back(Picos(0)); }
  std::vector<Picos> busy() const { return {times_.begin(), times_.end()}; }

 private:
  std::deque<Picos> times_;
};

}  // namespace verbscope::sim
