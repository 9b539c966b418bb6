// What simulated threads poll: queues, such as completion queues, and memory that peers write to.
#pragma once

#include <algorithm>
#include <boost/container/small_vector.hpp>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/units.hpp"

namespace verbscope::sim {

class SimThread;

// A queue that simulated threads poll.
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

// The memory ranges that threads of a node poll. WRITEs and atomics of peers, responses to READs, and atomic
// instructions of other threads wake the threads.
class MemoryWatch {
 public:
  void add(const void* begin, std::size_t bytes, SimThread& thread) {
    const auto address = reinterpret_cast<std::uint64_t>(begin);
    places_.push_back({address, address + bytes, &thread});
  }
  // True if a thread polls a part of [address, address + bytes).
  bool is_polled(std::uint64_t address, std::uint64_t bytes) const {
    return std::ranges::any_of(places_, [=](const Place& place) { return place.overlaps(address, bytes); });
  }
  // Calls `wake` for each thread that polls a part of [address, address + bytes).
  template <class Wake>
  void written(std::uint64_t address, std::uint64_t bytes, Wake&& wake) const {
    for (const Place& place : places_) {
      if (place.overlaps(address, bytes)) wake(*place.thread);
    }
  }

 private:
  struct Place {
    std::uint64_t begin;
    std::uint64_t end;
    SimThread* thread;

    bool overlaps(std::uint64_t address, std::uint64_t bytes) const { return begin < address + bytes && address < end; }
  };
  std::vector<Place> places_;
};

}  // namespace verbscope::sim
