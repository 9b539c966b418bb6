// The NIC's caches of host memory: WQEs between arrival and last use, the state of QPs, address translations. Each
// holds so many bytes. To make room it throws out either what came first, so that a working set a little larger than
// the cache misses always, or entries at random, so that it misses more and more: what adapters do is not public.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "nic_sim/profile/profile.hpp"
#include "nic_sim/profile/random.hpp"

namespace verbscope::sim {

// It says where a cache has an entry, of which it is the member `place`.
struct CachePlace {
  std::uint32_t number = 0;  // places count from 1; 0: it has none
  bool cached() const { return number > 0; }
};

// `Entry` has a member `CachePlace place` and a member or constant `bytes`.
template <class Entry>
class Cache {
 public:
  Cache(Bytes capacity, Replacement replacement, std::uint64_t seed)
      : capacity_(capacity.value), replacement_(replacement), random_(seed) {}

  // Whether `entry` is here. After a miss it is, if it fits at all, and others may have left.
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

  // Whether there was ever no room for all.
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

  // Where one entry at random leaves enough room: its place goes to the last one, whose place is the new one's.
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
  std::size_t first_ = 0;       // before it are gaps only
  std::vector<Entry*> places_;  // in the order of their coming, with gaps; for random victims in any, without
  Random random_;
};

}  // namespace verbscope::sim
