// A hash table from 64-bit keys to counts. find() and insert() are lock-free. A key must be inserted by one thread at a
// time.
#pragma once

#include <sys/mman.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace verbscope::driver {

class Lookup {
 public:
  static constexpr unsigned kBits = 18;
  static constexpr std::size_t kPlaces = std::size_t{1} << kBits;
  static constexpr std::size_t kMaxKeys = kPlaces / 4 * 3;

  // False if there is no memory.
  bool open() {
    void* const room = mmap(nullptr, sizeof(Place) * kPlaces, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED) return false;
    places_ = static_cast<Place*>(room);
    return true;
  }
  void close() {
    munmap(places_, sizeof(Place) * kPlaces);
    places_ = nullptr;
    taken_ = longest_ = 0;
  }

  // Null if the key is not found.
  void* find(std::uint64_t key) const {
    const Place* place = &places_[first_of(key)];
    if (place->key.load(std::memory_order_acquire) == key) [[likely]]
      return place->value;
    return find_behind(place, key);
  }

  // `key` must be new and above 2, because smaller values mark places. False if there are too many keys.
  bool insert(std::uint64_t key, void* value) {
    if (taken_.fetch_add(1, std::memory_order_relaxed) >= kMaxKeys) {
      taken_.fetch_sub(1, std::memory_order_relaxed);
      return false;
    }
    const std::size_t first = first_of(key);
    for (std::size_t distance = 0;; ++distance) {
      Place& place = places_[(first + distance) % kPlaces];
      std::uint64_t seen = place.key.load(std::memory_order_relaxed);
      if (seen != kFree && seen != kErased) continue;
      if (!place.key.compare_exchange_strong(seen, kBeingMade, std::memory_order_acquire)) continue;
      note_distance(distance);
      place.value = value;
      place.key.store(key, std::memory_order_release);
      return true;
    }
  }

  void erase(std::uint64_t key) {
    const std::size_t last = first_of(key) + longest_.load();
    for (std::size_t at = first_of(key); at <= last; ++at) {
      const std::size_t i = at % kPlaces;
      const std::uint64_t seen = places_[i].key.load(std::memory_order_relaxed);
      if (seen == kFree) return;
      if (seen != key) continue;
      places_[i].key.store(kErased, std::memory_order_relaxed);
      taken_.fetch_sub(1, std::memory_order_relaxed);
      return;
    }
  }

 private:
  static constexpr std::uint64_t kFree = 0, kErased = 1, kBeingMade = 2;
  struct Place {
    std::atomic<std::uint64_t> key;
    void* value;
  };

  // Erased places are reused but never become free again, so a search for a missing key cannot rely on finding a free
  // place. It stops after the longest probe distance of any key.
  void note_distance(std::size_t distance) {
    std::size_t longest = longest_.load();
    while (distance > longest && !longest_.compare_exchange_weak(longest, distance)) {
    }
  }

  static std::size_t first_of(std::uint64_t key) { return (key * 0x9e3779b97f4a7c15) >> (64 - kBits); }

  [[gnu::noinline]] void* find_behind(const Place* place, std::uint64_t key) const {
    for (std::size_t left = longest_.load(std::memory_order_acquire); left > 0; --left) {
      if (++place == places_ + kPlaces) place = places_;
      const std::uint64_t seen = place->key.load(std::memory_order_acquire);
      if (seen == key) return place->value;
      if (seen == kFree) return nullptr;
    }
    return nullptr;
  }

  Place* places_ = nullptr;
  std::atomic<std::size_t> taken_{0};
  std::atomic<std::size_t> longest_{0};  // longest probe distance of all keys, including erased ones
};

}  // namespace verbscope::driver
