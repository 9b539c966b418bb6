// The NIC's caches of host memory: WQEs between arrival and last use, the state of QPs, address translations. Each
// holds so many bytes; to make room it throws out entries at random: what adapters do is not public, and unlike the
// least recently used one, a random victim lets a working set that grows past the cache miss more and more, not at
// once.
#pragma once

#include <vector>

#include "nic_sim/nic/objects.hpp"
#include "nic_sim/profile/random.hpp"

namespace verbscope::sim {

// `Entry` has a member `CachePlace place` and a member or constant `bytes`.
template <class Entry>
class Cache {
 public:
  Cache(Bytes capacity, std::uint64_t seed) : capacity_(capacity.value), random_(seed) {}

  // Whether `entry` is here. After a miss it is, if it fits at all, and others may have left.
  bool use(Entry& entry) {
    if (entry.place.cached()) return true;
    insert(entry);
    return false;
  }

  void insert(Entry& entry) {
    if (entry.bytes > capacity_) return;
    while (used_ + entry.bytes > capacity_) drop(*held_[random_.below(held_.size())]);
    held_.push_back(&entry);
    entry.place.number = static_cast<std::uint32_t>(held_.size());
    used_ += entry.bytes;
  }

  void drop(Entry& entry) {
    if (!entry.place.cached()) return;
    held_.back()->place.number = entry.place.number;
    held_[entry.place.number - 1] = held_.back();
    held_.pop_back();
    entry.place.number = 0;
    used_ -= entry.bytes;
  }

 private:
  std::uint64_t capacity_;
  std::uint64_t used_ = 0;
  std::vector<Entry*> held_;
  Random random_;
};

}  // namespace verbscope::sim
