// The NIC's caches of host memory: WQEs between arrival and last use, QP contexts, address translations. A cache has a
// capacity in bytes. It evicts the oldest entry, so that a working set slightly above the capacity always misses, or a
// random one, so that misses grow gradually. The policies of adapters are not public.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "nic_sim/profile/profile.hpp"
#include "nic_sim/profile/random.hpp"

namespace verbscope::sim {

// The place of an entry in a cache: the member `place` of the entry.
struct CachePlace {
  std::uint32_t number = 0;  // from 1; 0: not cached
  bool cached() const { return number > 0; }
};

// `Entry` has a member `CachePlace place` and a member or constant `bytes`.
template <class Entry>
class Cache {
 public:
  Cache(Bytes capacity, Replacement replacement, std::uint64_t seed)
      : capacity_(capacity.value), replacement_(replacement), random_(seed) {}

  // Returns true if `entry` is cached. Else inserts it, which may evict others.
  bool use(Entry& entry) {
    if (entry.place.cached()) return true;
    insert(entry);
    return false;
  }

  void insert(Entry& entry) {
    was_full_ = was_full_ || used_ + entry.bytes > capacity_;
    if (entry.bytes > capacity_) return;
    if (replacement_ == Replacement::random && used_ + entry.bytes > capacity_ && take_place_of_one(entry)) return;
    while (used_ + entry.bytes > capacity_) drop(victim());
    if (replacement_ == Replacement::oldest && places_.size() > 2 * held_ + kSpare) close_gaps();
    places_.push_back(&entry);
    entry.place.number = static_cast<std::uint32_t>(places_.size());
    used_ += entry.bytes;
    ++held_;
  }

  // True if an insertion ever found too little room.
  bool was_full() const { return was_full_; }

  void drop(Entry& entry) {
    if (!entry.place.cached()) return;
    if (replacement_ == Replacement::random) {
      places_.back()->place.number = entry.place.number;
      places_[entry.place.number - 1] = places_.back();
      places_.pop_back();
    } else {
      places_[entry.place.number - 1] = nullptr;  // a gap, until the places are moved together
    }
    entry.place.number = 0;
    used_ -= entry.bytes;
    --held_;
  }

 private:
  static constexpr std::size_t kSpare = 64;

  // Evicts a random entry and inserts `entry`, if they are of equal size: the last entry takes the free place, and
  // `entry` the last one. Else only evicts it and returns false.
  bool take_place_of_one(Entry& entry) {
    const std::size_t number = random_.below(places_.size());
    Entry& leaves = *places_[number];
    if (leaves.bytes != entry.bytes) {
      drop(leaves);
      return false;
    }
    Entry*& last = places_.back();
    places_[number] = last;
    last->place.number = static_cast<std::uint32_t>(number + 1);
    leaves.place.number = 0;
    last = &entry;
    entry.place.number = static_cast<std::uint32_t>(places_.size());
    return true;
  }

  Entry& victim() {
    if (replacement_ == Replacement::random) return *places_[random_.below(places_.size())];
    while (places_[first_] == nullptr) ++first_;
    return *places_[first_];
  }

  void close_gaps() {
    std::size_t kept = 0;
    for (std::size_t i = first_; i < places_.size(); ++i) {
      if (places_[i] == nullptr) continue;
      places_[kept++] = places_[i];
      places_[kept - 1]->place.number = static_cast<std::uint32_t>(kept);
    }
    places_.resize(kept);
    first_ = 0;
  }

  std::uint64_t capacity_;
  std::uint64_t used_ = 0;
  Replacement replacement_;
  bool was_full_ = false;
  std::size_t held_ = 0;
  std::size_t first_ = 0;       // the places before it are empty
  std::vector<Entry*> places_;  // oldest: in order of insertion, with gaps; random: in any order, without gaps
  Random random_;
};

}  // namespace verbscope::sim
