// The table of a store after Pilaf (Mitchell, Geng and Li, ATC 2013; Kalia et al., SIGCOMM 2014, section 5.1.1), which
// clients READ without the server's CPU: a cuckoo hash in which a key has three buckets of one item each, at 75 %
// occupancy. A bucket points to the item and has a checksum of itself and one of the item, so that a client knows a
// bucket that was READ while it was written, and an item whose place was given to another meanwhile.
//
// A PUT writes the new item to a spare place, then the bucket. The place of the old item is used again after kSpares
// further PUTs of the same thread. Keys are there from the beginning: buckets do not move while clients READ them.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "common/error.hpp"
#include "common/hash.hpp"
#include "common/units.hpp"
#include "machine/node.hpp"
#include "systems/one_sided/access.hpp"
#include "wire/pcie.hpp"

namespace verbscope {

// The checksum by which a client detects torn READs: a chain of SplitMix64 over the words. It is not cryptographic.
// Covers `bytes` bytes, padded with zeros to whole words, and `start`.
inline std::uint64_t checksum(const std::byte* from, std::size_t bytes, std::uint64_t start) {
  std::uint64_t sum = mix(start ^ bytes);
  for (std::size_t at = 0; at < bytes; at += sizeof sum) {
    std::uint64_t word = 0;
    std::memcpy(&word, from + at, std::min(sizeof word, bytes - at));
    sum = mix(sum ^ word);
  }
  return sum;
}

struct PilafBucket {
  std::uint32_t item = 0;        // the item's number + 1; 0: the bucket is empty
  std::uint32_t bytes = 0;       // of the value
  std::uint64_t tag = 0;         // half of the key's hash, which identifies the item
  std::uint64_t item_check = 0;  // of key and value
  std::uint64_t own_check = 0;   // of all before it

  bool empty() const { return item == 0 && own_check == 0; }
  std::uint64_t check() const {
    return checksum(reinterpret_cast<const std::byte*>(this), offsetof(PilafBucket, own_check), 1);
  }
};
static_assert(sizeof(PilafBucket) == 32);

class PilafGet;
class PilafPuts;

class PilafTable {
 public:
  using Get = PilafGet;
  using Puts = PilafPuts;
  static constexpr std::uint32_t kBuckets = 3;  // of a key
  static constexpr std::uint32_t kSpares = 64;  // spare items of a thread

  PilafTable(std::uint64_t keys, std::uint32_t value_bytes, std::uint32_t threads);

  std::uint64_t region_bytes() const { return locks_at() + kLocks * sizeof(std::uint32_t); }
  std::uint32_t value_bytes() const { return value_bytes_; }
  std::uint32_t largest_read() const { return std::max<std::uint32_t>(value_bytes_, sizeof(PilafBucket)); }

  // Offsets in the region.
  std::uint64_t bucket_at(const lookups::KeyHash& key, std::uint32_t which) const {
    return scaled(mix(key.low + which * kMixStep)) * sizeof(PilafBucket);
  }
  std::uint64_t item_at(std::uint32_t item) const { return items_at() + item * stride_; }
  // Spare item `which` of a thread, before the run.
  std::uint32_t spare(std::uint32_t thread, std::uint32_t which) const {
    return static_cast<std::uint32_t>(keys_) + thread * kSpares + which;
  }

  std::uint64_t item_check(const lookups::KeyHash& key, const std::byte* value) const {
    return checksum(value, value_bytes_, key.low ^ mix(key.high));
  }

  // Puts all contents into the zeroed region. Throws Error when they find no places.
  void fill(std::span<std::byte> region, const TableContents& contents) const;

  // The word that a thread locks to change the bucket at this offset: 1 while it does.
  std::atomic_ref<std::uint32_t> lock_of(std::byte* region, std::uint64_t bucket) const {
    const std::uint64_t which = bucket / sizeof(PilafBucket) % kLocks;
    return std::atomic_ref<std::uint32_t>(*reinterpret_cast<std::uint32_t*>(region + locks_at() + which * 4));
  }

 private:
  static constexpr std::uint32_t kFreeBucket = 0xffffffff;
  static constexpr std::uint32_t kMaxMoves = 500;
  static constexpr std::uint64_t kItemAlignment = 8;

  static constexpr std::uint64_t kLocks = 1024;

  // A bucket from 64 random bits.
  std::uint64_t scaled(std::uint64_t bits) const { return (bits >> 32) * buckets_ >> 32; }
  std::uint64_t items_at() const { return round_up(buckets_ * sizeof(PilafBucket), kCacheLine.value); }
  std::uint64_t locks_at() const { return items_at() + items_ * stride_; }
  std::vector<std::uint32_t> place_all(const TableContents& contents) const;

  std::uint64_t keys_, buckets_, items_;
  std::uint32_t value_bytes_;
  std::uint64_t stride_;  // bytes from an item to the next
};

// A GET of a client.
class PilafGet {
 public:
  RegionPiece begin(const PilafTable& table, const lookups::KeyHash& key) {
    key_ = key;
    which_ = 0;
    return bucket(table);
  }

  // `got` holds what `piece` asked for.
  GetStep take(const PilafTable& table, const std::byte* got, RegionPiece& piece, GetCounts& counts) {
    if (at_item_) {
      counts.values.count(piece);
      if (table.item_check(key_, got) == item_check_) return GetStep::found(got);
      ++counts.moved;
      piece = bucket(table);
      return GetStep::on();
    }
    PilafBucket read;
    std::memcpy(&read, got, sizeof read);
    counts.probes.count(piece);
    if (read.check() != read.own_check && !read.empty()) {
      ++counts.torn;
    } else if (read.tag == key_.high && !read.empty()) {
      at_item_ = true;
      item_check_ = read.item_check;
      piece = {table.item_at(read.item - 1), table.value_bytes()};
      return GetStep::on();
    } else if (++which_ == PilafTable::kBuckets) {
      return GetStep::missing();
    }
    piece = bucket(table);
    return GetStep::on();
  }

 private:
  RegionPiece bucket(const PilafTable& table) {
    at_item_ = false;
    return {table.bucket_at(key_, which_), sizeof(PilafBucket)};
  }

  lookups::KeyHash key_;
  std::uint32_t which_ = 0;
  bool at_item_ = false;
  std::uint64_t item_check_ = 0;
};

// The PUTs of one of the server's threads.
class PilafPuts {
 public:
  PilafPuts(const PilafTable& table, std::byte* region, std::uint32_t thread);

  // False if there is no such key.
  template <Node N>
  bool put(N& node, const lookups::KeyHash& key, const std::byte* value) {
    std::byte* const bucket = find(node, key);
    if (bucket == nullptr) return false;
    std::byte* const item = region_ + table_.item_at(spares_[next_]);
    for (std::uint64_t at = 0; at < table_.value_bytes(); at += kCacheLine.value) node.prefetch(item + at);
    for (std::uint64_t at = 0; at < table_.value_bytes(); at += kCacheLine.value) node.load(item + at);
    std::memcpy(item, value, table_.value_bytes());
    const std::uint64_t item_check = table_.item_check(key, value);
    const auto lock = table_.lock_of(region_, static_cast<std::uint64_t>(bucket - region_));
    while (lock.exchange(1, std::memory_order_acquire) != 0) node.idle_until(node.now() + kRetry);
    PilafBucket written;
    std::memcpy(&written, bucket, sizeof written);
    const std::uint32_t before = written.item - 1;
    written.item = spares_[next_] + 1;
    written.item_check = item_check;
    written.own_check = written.check();
    store(bucket, written);
    lock.store(0, std::memory_order_release);
    spares_[next_] = before;
    next_ = (next_ + 1) % PilafTable::kSpares;
    return true;
  }

 private:
  static constexpr Nanos kRetry = std::chrono::nanoseconds(50);  // between looks at a lock that another thread has

  template <Node N>
  std::byte* find(N& node, const lookups::KeyHash& key) const {
    for (std::uint32_t which = 0; which < PilafTable::kBuckets; ++which) {
      std::byte* const bucket = region_ + table_.bucket_at(key, which);
      node.load(bucket);
      if (word(bucket, offsetof(PilafBucket, own_check)).load(std::memory_order_relaxed) == 0) continue;
      if (word(bucket, offsetof(PilafBucket, tag)).load(std::memory_order_relaxed) == key.high) return bucket;
    }
    return nullptr;
  }

  static std::atomic_ref<std::uint64_t> word(std::byte* bucket, std::size_t at) {
    return std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(bucket + at));
  }

  // Word by word, after the item: other threads look at tags meanwhile, and adapters at all of it.
  static void store(std::byte* bucket, const PilafBucket& written) {
    for (std::size_t at = 0; at < sizeof written; at += 8) {
      std::uint64_t value;
      std::memcpy(&value, reinterpret_cast<const std::byte*>(&written) + at, sizeof value);
      word(bucket, at).store(value, std::memory_order_release);
    }
  }

  PilafTable table_;
  std::byte* region_;
  std::vector<std::uint32_t> spares_;
  std::uint32_t next_ = 0;
};

inline PilafTable::PilafTable(std::uint64_t keys, std::uint32_t value_bytes, std::uint32_t threads)
    : keys_(keys),
      buckets_(std::max<std::uint64_t>(kBuckets, (4 * keys + 2) / 3)),
      items_(keys + std::uint64_t{threads} * kSpares),
      value_bytes_(value_bytes),
      stride_(round_up(value_bytes, kItemAlignment)) {
  if (items_ >= kFreeBucket) fail("a cuckoo table of {} keys has too many items: fewer than 2^32 are allowed", keys);
}

// Returns the key's number for each bucket. A key takes the first free one of its buckets, or displaces the item of one
// of them, which then does the same.
inline std::vector<std::uint32_t> PilafTable::place_all(const TableContents& contents) const {
  std::vector<std::uint32_t> owners(buckets_, kFreeBucket);
  for (std::uint64_t i = 0; i < keys_; ++i) {
    auto homeless = static_cast<std::uint32_t>(i);
    for (std::uint32_t moves = 0; homeless != kFreeBucket; ++moves) {
      const lookups::KeyHash key = contents.hash_of(homeless);
      std::uint32_t which = 0;
      while (which < kBuckets && owners[bucket_at(key, which) / sizeof(PilafBucket)] != kFreeBucket) ++which;
      if (which == kBuckets) which = static_cast<std::uint32_t>(mix(homeless + moves * kMixStep) % kBuckets);
      if (moves == kMaxMoves) fail("a cuckoo table of {} keys has no bucket for key {}", keys_, i);
      std::swap(homeless, owners[bucket_at(key, which) / sizeof(PilafBucket)]);
    }
  }
  return owners;
}

inline void PilafTable::fill(std::span<std::byte> region, const TableContents& contents) const {
  const std::vector<std::uint32_t> owners = place_all(contents);
  for (std::uint64_t b = 0; b < buckets_; ++b) {
    if (owners[b] == kFreeBucket) continue;
    const lookups::KeyHash key = contents.hash_of(owners[b]);
    const std::span<std::byte> value = region.subspan(item_at(owners[b]), value_bytes_);
    contents.fill_value(owners[b], value.data());
    PilafBucket bucket{.item = owners[b] + 1, .bytes = value_bytes_, .tag = key.high};
    bucket.item_check = item_check(key, value.data());
    bucket.own_check = bucket.check();
    std::memcpy(region.data() + b * sizeof bucket, &bucket, sizeof bucket);
  }
}

inline PilafPuts::PilafPuts(const PilafTable& table, std::byte* region, std::uint32_t thread)
    : table_(table), region_(region), spares_(PilafTable::kSpares) {
  for (std::uint32_t i = 0; i < PilafTable::kSpares; ++i) spares_[i] = table.spare(thread, i);
}

}  // namespace verbscope
