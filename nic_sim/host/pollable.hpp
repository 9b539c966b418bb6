// A queue that simulated threads poll, as a thread knows it. A completion queue is one.
#pragma once

#include <boost/container/small_vector.hpp>

#include "common/units.hpp"

namespace verbscope::sim {

class SimThread;

struct Pollable {
  // Yields when a poll can see the next entry of `queue`; Picos::max() when there is none.
  using NextVisible = Picos (*)(const Pollable& queue);

  explicit Pollable(NextVisible function) : next_visible(function) {}

  // Whether another thread may take what one is waiting for.
  bool is_shared() const { return waiters.size() > 1; }

  NextVisible next_visible;
  // The threads that poll the queue. A derived queue's own hot members follow in the same cache line.
  alignas(64) boost::container::small_vector<SimThread*, 1> waiters;
};

}  // namespace verbscope::sim
