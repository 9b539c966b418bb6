// The memory ranges that threads of a node poll. WRITEs and atomics of peers, and responses to READs, wake the threads.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace verbscope::sim {

class SimThread;

class MemoryWatch {
 public:
  void add(const void* begin, std::size_t bytes, SimThread& thread) {
    const auto address = reinterpret_cast<std::uint64_t>(begin);
    places_.push_back({address, address + bytes, &thread});
  }
  // True if a thread polls a part of [address, address + bytes).
  bool polled(std::uint64_t address, std::uint64_t bytes) const {
    return std::ranges::any_of(places_, [=](const Place& p) { return p.begin < address + bytes && address < p.end; });
  }
  // Calls `wake` for each thread that polls a part of [address, address + bytes).
  template <class Wake>
  void written(std::uint64_t address, std::uint64_t bytes, Wake&& wake) const {
    for (const Place& place : places_) {
      if (place.begin < address + bytes && address < place.end) wake(*place.thread);
    }
  }

 private:
  struct Place {
    std::uint64_t begin;
    std::uint64_t end;
    SimThread* thread;
  };
  std::vector<Place> places_;
};

}  // namespace verbscope::sim
