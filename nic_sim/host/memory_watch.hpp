// Which threads of a node poll which memory. Remote WRITEs and atomics wake them.
#pragma once

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
  // Calls `wake` with each thread that polls a part of [address, address + bytes).
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
