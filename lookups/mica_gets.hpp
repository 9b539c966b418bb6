// Batches of GETs from a MICA store, in the three variants of the other structures. There are no PUTs, because look-ups
// that take turns end in any order, which PUTs between them would make visible.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "lookups/interleave.hpp"
#include "lookups/mica_store.hpp"

namespace verbscope::lookups {

class MicaGets {
 public:
  using Key = KeyHash;
  struct Result {
    MicaEnd end = MicaEnd::refused;
    std::uint64_t value = 0;  // its first eight bytes after a hit
    friend bool operator==(const Result&, const Result&) = default;
  };

  explicit MicaGets(MicaStore& store) : store_(&store) {}

  template <Node N>
  Result find(N& node, const Key& key) const {
    node.load(store_->bucket_place(key));
    if (const std::byte* item = store_->item_place(key)) node.load(item);
    return read(key);
  }

  template <Node N>
  void find_group(N& node, std::span<const Key> keys, Result* results) const {
    std::array<const std::byte*, kMaxBatch> items;
    for (const Key& key : keys) node.prefetch(store_->bucket_place(key));
    for (std::size_t i = 0; i < keys.size(); ++i) {
      node.load(store_->bucket_place(keys[i]));
      items[i] = store_->item_place(keys[i]);
      if (items[i] != nullptr) node.prefetch(items[i]);
    }
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (items[i] != nullptr) node.load(items[i]);
      results[i] = read(keys[i]);
    }
  }

  template <Node N>
  static Lane find_lane(FrameSlot&, N& node, const MicaGets& gets, Batch<Key, Result>& batch) {
    while (batch.left()) {
      const std::size_t mine = batch.take();
      const Key& key = batch.keys[mine];
      co_await Fetched{node, gets.store_->bucket_place(key)};
      if (const std::byte* item = gets.store_->item_place(key)) co_await Fetched{node, item};
      batch.results[mine] = gets.read(key);
    }
  }

 private:
  Result read(const Key& key) const {
    std::array<std::byte, MicaStore::kMaxValue> value;
    std::size_t length = 0;
    Result result;
    result.end = store_->get(key, value.data(), length);
    if (result.end == MicaEnd::hit) std::memcpy(&result.value, value.data(), std::min(length, sizeof result.value));
    return result;
  }

  MicaStore* store_;
};

}  // namespace verbscope::lookups
