// A 2-8 cuckoo hash table: a key is in one of two buckets of eight slots; each bucket is one cache line. 32-bit keys
// and values, as in G-Opt, section 3.3. Half of the keys are in their second bucket: 1.5 accesses per look-up.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "common/error.hpp"
#include "common/hash.hpp"
#include "lookups/interleave.hpp"
#include "machine/memory.hpp"

namespace verbscope::lookups {

class Cuckoo {
 public:
  using Key = std::uint32_t;  // not 0, which marks an empty slot
  struct Result {
    bool found = false;
    std::uint32_t value = 0;
    friend bool operator==(const Result&, const Result&) = default;
  };
  static constexpr std::size_t kSlots = 8;
  static constexpr std::size_t kMaxMoves = 500;  // of other keys, to make room for one

  // `bytes`: a power of two, at least 128 (two buckets).
  Cuckoo(Bytes bytes, PageSize pages);

  enum class Inserted { added, overwritten, full, refused };
  // Inserts a key, or overwrites its value. `full`: no room was found after kMaxMoves moves of other keys; the table
  // is unchanged. `refused`: key 0. No look-ups may run at the same time.
  Inserted insert(Key key, std::uint32_t value);

  std::size_t buckets() const { return mask_ + 1; }
  // True if a look-up of the key ends at its first bucket.
  bool in_first(Key key) const { return scan(first_bucket(key), key).found; }
  const Buffer& memory() const { return memory_; }

  template <Node N>
  Result find(N& node, Key key) const {
    const std::size_t first = first_bucket(key);
    node.load(&table_[first]);
    if (const Result result = scan(first, key); result.found) return result;
    const std::size_t second = other_bucket(first, key);
    node.load(&table_[second]);
    return scan(second, key);
  }

  // Three stages. The last one handles only the keys that were not in their first buckets.
  template <Node N>
  void find_group(N& node, std::span<const Key> keys, Result* results) const {
    std::array<std::size_t, kMaxBatch> bucket;
    std::array<std::uint8_t, kMaxBatch> missing;
    std::size_t misses = 0;
    for (std::size_t i = 0; i < keys.size(); ++i) node.prefetch(&table_[bucket[i] = first_bucket(keys[i])]);
    for (std::size_t i = 0; i < keys.size(); ++i) {
      node.load(&table_[bucket[i]]);
      results[i] = scan(bucket[i], keys[i]);
      if (results[i].found) continue;
      node.prefetch(&table_[bucket[i] = other_bucket(bucket[i], keys[i])]);
      missing[misses++] = static_cast<std::uint8_t>(i);
    }
    for (std::size_t m = 0; m < misses; ++m) {
      const std::size_t i = missing[m];
      node.load(&table_[bucket[i]]);
      results[i] = scan(bucket[i], keys[i]);
    }
  }

  template <Node N>
  static Lane find_lane(FrameSlot&, N& node, const Cuckoo& table, Batch<Key, Result>& batch) {
    while (batch.left()) {
      const std::size_t mine = batch.take();
      const Key key = batch.keys[mine];
      std::size_t bucket = table.first_bucket(key);
      co_await Fetched{node, &table.table_[bucket]};
      Result result = table.scan(bucket, key);
      if (!result.found) {
        bucket = table.other_bucket(bucket, key);
        co_await Fetched{node, &table.table_[bucket]};
        result = table.scan(bucket, key);
      }
      batch.results[mine] = result;
    }
  }

 private:
  struct alignas(64) Bucket {
    std::array<Key, kSlots> keys;
    std::array<std::uint32_t, kSlots> values;
  };
  static_assert(sizeof(Bucket) == 64);

  std::size_t first_bucket(Key key) const { return mix(key) & mask_; }
  // The other bucket of a key. Applied twice, it returns the first one. Never equal to `bucket`.
  std::size_t other_bucket(std::size_t bucket, Key key) const {
    return bucket ^ ((mix(~std::uint64_t{key}) & mask_) | 1);
  }
  Result scan(std::size_t bucket, Key key) const {
    const Bucket& b = table_[bucket];
    for (std::size_t slot = 0; slot < kSlots; ++slot) {
      if (b.keys[slot] == key && key != 0) return {true, b.values[slot]};
    }
    return {};
  }
  std::size_t used(std::size_t bucket) const;
  bool put(std::size_t bucket, Key key, std::uint32_t value);

  Buffer memory_;
  Bucket* table_;
  std::size_t mask_;
};

inline Cuckoo::Cuckoo(Bytes bytes, PageSize pages)
    : memory_(bytes, pages), table_(reinterpret_cast<Bucket*>(memory_.data())), mask_(bytes.value / 64 - 1) {
  if (!std::has_single_bit(bytes.value) || bytes.value < 128) {
    fail("a cuckoo table of {} bytes (allowed: a power of two, 128 or more)", bytes.value);
  }
}

inline std::size_t Cuckoo::used(std::size_t bucket) const {
  return static_cast<std::size_t>(kSlots - std::ranges::count(table_[bucket].keys, Key{0}));
}

inline bool Cuckoo::put(std::size_t bucket, Key key, std::uint32_t value) {
  Bucket& b = table_[bucket];
  const auto free = std::ranges::find(b.keys, Key{0});
  if (free == b.keys.end()) return false;
  *free = key;
  b.values[static_cast<std::size_t>(free - b.keys.begin())] = value;
  return true;
}

inline Cuckoo::Inserted Cuckoo::insert(Key key, std::uint32_t value) {
  if (key == 0) return Inserted::refused;
  const std::size_t first = first_bucket(key), second = other_bucket(first, key);
  for (const std::size_t bucket : {first, second}) {
    const auto there = std::ranges::find(table_[bucket].keys, key);
    if (there == table_[bucket].keys.end()) continue;
    table_[bucket].values[static_cast<std::size_t>(there - table_[bucket].keys.begin())] = value;
    return Inserted::overwritten;
  }
  // Chooses the emptier bucket. If both are equal, a bit of the key decides, so that half of the keys go to each.
  const std::size_t in_first = used(first), in_second = used(second);
  const bool take_second = in_second < in_first || (in_second == in_first && (mix(key) >> 63) != 0);
  std::size_t bucket = take_second ? second : first;
  std::array<std::pair<std::size_t, std::size_t>, kMaxMoves> moved;  // bucket and slot of each move
  for (std::size_t moves = 0; moves < kMaxMoves; ++moves) {
    if (put(bucket, key, value)) return Inserted::added;
    const std::size_t slot = mix(key + moves * kMixStep) % kSlots;
    moved[moves] = {bucket, slot};
    std::swap(key, table_[bucket].keys[slot]);
    std::swap(value, table_[bucket].values[slot]);
    bucket = other_bucket(bucket, key);
  }
  for (std::size_t i = kMaxMoves; i-- > 0;) {
    std::swap(key, table_[moved[i].first].keys[moved[i].second]);
    std::swap(value, table_[moved[i].first].values[moved[i].second]);
  }
  return Inserted::full;
}

}  // namespace verbscope::lookups
