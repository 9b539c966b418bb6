// The two accesses of an operation on MICA's cache, bucket and item, by a thread that works on several operations and
// asks for the memory of each before it is needed. Data path.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "lookups/mica_store.hpp"
#include "machine/node.hpp"
#include "wire/pcie.hpp"

namespace verbscope {

// The offset of a byte of an item's second line, for items of so many bytes: within the first two lines. Of long ones
// the prefetcher of the core asks for the rest by itself.
constexpr std::size_t second_line_of(std::size_t bytes) {
  return std::min<std::size_t>(bytes - 1, kCacheLine.value);
}

// Reads the bucket, which was asked for, into `found`, and asks for the item that it names.
template <Node N>
[[gnu::always_inline]] inline void find_and_prefetch(N& node, const lookups::MicaStore& store,
                                                     const lookups::KeyHash& key, std::size_t second_line,
                                                     lookups::MicaStore::Found& found) {
  node.load(store.bucket_place(key));
  found = store.find(key);
  const std::byte* const there = found.item;
  if (there == nullptr) return;
  node.prefetch(there);
  node.prefetch(there + second_line);
}

// Waits for the lines of an item; null: there is none.
template <Node N>
[[gnu::always_inline]] inline void load_item(N& node, const std::byte* item, std::size_t second_line) {
  if (item == nullptr) return;
  const auto line_of = [](const std::byte* at) { return reinterpret_cast<std::uintptr_t>(at) / kCacheLine.value; };
  node.load(item);
  if (line_of(item) != line_of(item + second_line)) node.load(item + second_line);
}

}  // namespace verbscope
