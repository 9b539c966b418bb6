// How long each spin lock of one node has been held so far, including the time of handing it over.
#pragma once

#include <deque>
#include <vector>

#include "common/units.hpp"

namespace verbscope::sim {

class LockTimes {
 public:
  // Adds a lock. The caller adds to the returned time.
  Picos& add() { return times_.emplace_back(Picos(0)); }
  std::vector<Picos> busy() const { return {times_.begin(), times_.end()}; }

 private:
  std::deque<Picos> times_;
};

}  // namespace verbscope::sim
