// A queue that simulated threads poll, such as a completion queue.
#pragma once

#include <boost/container/small_vector.hpp>

#include "common/units.hpp"

namespace verbscope::sim {

class SimThread;

struct Pollable {
  // Returns the time from which a poll can see the next entry of `queue`; Picos::max() if there is none.
  using NextVisible = Picos (*)(const Pollable& queue);

  explicit Pollable(NextVisible function) : next_visible(function) {}

  // True if another thread may take the entry that a thread waits for.
  bool is_shared() const { return waiters.size() > 1; }

  NextVisible next_visible;
  // The threads that poll the queue. Hot members of the derived queue follow in the same cache line.
  alignas(64) boost::container::small_vector<SimThread*, 1> waiters;
};

}  // namespace verbscope::sim
