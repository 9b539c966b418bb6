// Longest-prefix match in a table indexed by the first 24 bits, followed by groups of 256 entries for 8 further bits
// each. For IPv4: DIR-24-8 (Gupta, Lin, McKeown, INFOCOM 1998), one or two accesses. For IPv6: as in LPM6 of DPDK, up
// to 14 accesses.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "common/error.hpp"
#include "lookups/interleave.hpp"
#include "machine/memory.hpp"

namespace verbscope::lookups {

template <std::size_t AddressBytes>
using Address = std::array<std::uint8_t, AddressBytes>;  // the first byte is the most significant

template <std::size_t AddressBytes>
struct Prefix {
  Address<AddressBytes> address{};
  std::uint8_t bits = 0;       // number of significant bits; 0: every address
  std::uint32_t next_hop = 0;  // below PrefixTable::kHops
};

// Entry: an unsigned integer. If its highest bit is set, the rest is the number of a group; else it is the next hop
// plus one, or 0 if no prefix matches.
template <std::size_t AddressBytes, class Entry>
class PrefixTable {
 public:
  using Key = Address<AddressBytes>;
  using Result = std::uint32_t;  // the next hop, or kNoHop
  static constexpr Result kNoHop = ~Result{0};
  static constexpr Entry kGroup = Entry{1} << (std::numeric_limits<Entry>::digits - 1);
  static constexpr std::uint32_t kHops = kGroup - 1;
  static constexpr std::size_t kFirst = std::size_t{1} << 24;  // entries of the first table
  static constexpr std::size_t kGroupEntries = 256;
  static constexpr std::uint64_t kFirstBytes = kFirst * sizeof(Entry);
  static constexpr std::uint64_t kGroupBytes = kGroupEntries * sizeof(Entry);

  // Makes room for `groups` groups, at most kGroup.
  PrefixTable(std::size_t groups, PageSize pages);

  // Adds a prefix. Prefixes must be added in order of length, because each overwrites the entries that it covers:
  // throws Error if a prefix is shorter than an earlier one. Returns false, without a change, if too few groups are
  // left.
  bool add(const Prefix<AddressBytes>& prefix);

  std::size_t groups_used() const { return used_; }
  const Buffer& memory() const { return memory_; }

  template <Node N>
  Result find(N& node, const Key& key) const {
    const Entry* place = first(key);
    node.load(place);
    for (std::size_t byte = 3; is_group(*place); ++byte) {
      place = next(*place, key, byte);
      node.load(place);
    }
    return hop(*place);
  }

  // One stage per access of the longest path. Each stage handles only the keys that have not reached their end.
  template <Node N>
  void find_group(N& node, std::span<const Key> keys, Result* results) const {
    std::array<const Entry*, kMaxBatch> places;
    std::array<std::uint8_t, kMaxBatch> under_way;
    std::size_t count = keys.size();
    for (std::size_t i = 0; i < count; ++i) {
      under_way[i] = static_cast<std::uint8_t>(i);
      node.prefetch(places[i] = first(keys[i]));
    }
    for (std::size_t byte = 3; count > 0; ++byte) {
      std::size_t left = 0;
      for (std::size_t u = 0; u < count; ++u) {
        const std::size_t i = under_way[u];
        node.load(places[i]);
        if (is_group(*places[i])) {
          node.prefetch(places[i] = next(*places[i], keys[i], byte));
          under_way[left++] = static_cast<std::uint8_t>(i);
        } else {
          results[i] = hop(*places[i]);
        }
      }
      count = left;
    }
  }

  template <Node N>
  static Lane find_lane(FrameSlot&, N& node, const PrefixTable& table, Batch<Key, Result>& batch) {
    while (batch.left()) {
      const std::size_t mine = batch.take();
      const Key& key = batch.keys[mine];
      const Entry* place = table.first(key);
      co_await Fetched{node, place};
      for (std::size_t byte = 3; is_group(*place); ++byte) {
        place = table.next(*place, key, byte);
        co_await Fetched{node, place};
      }
      batch.results[mine] = hop(*place);
    }
  }

  // The number of accesses of a look-up.
  std::size_t accesses(const Key& key) const {
    const Entry* place = first(key);
    std::size_t count = 1;
    for (std::size_t byte = 3; is_group(*place); ++byte, ++count) place = next(*place, key, byte);
    return count;
  }

 private:
  static bool is_group(Entry entry) { return (entry & kGroup) != 0; }
  static Result hop(Entry entry) { return Result{entry} - 1; }
  const Entry* first(const Key& key) const { return entries_ + first_index(key); }
  const Entry* next(Entry entry, const Key& key, std::size_t byte) const {
    return group(static_cast<Entry>(entry & ~kGroup)) + key[byte];
  }
  static std::size_t first_index(const Key& key) {
    return std::size_t{key[0]} << 16 | std::size_t{key[1]} << 8 | key[2];
  }
  Entry* group(std::size_t number) const { return entries_ + kFirst + number * kGroupEntries; }
  std::size_t new_groups(const Prefix<AddressBytes>& prefix) const;

  Buffer memory_;
  Entry* entries_;
  std::size_t groups_;
  std::size_t used_ = 0;
  std::uint8_t longest_ = 0;
};

template <std::size_t AddressBytes, class Entry>
PrefixTable<AddressBytes, Entry>::PrefixTable(std::size_t groups, PageSize pages)
    : memory_(Bytes(kFirstBytes + groups * kGroupBytes), pages),
      entries_(reinterpret_cast<Entry*>(memory_.data())),
      groups_(groups) {
  if (groups > kGroup) fail("a prefix table of {} groups (allowed: up to {})", groups, kGroup);
}

// The number of groups that must be added for a prefix.
template <std::size_t AddressBytes, class Entry>
std::size_t PrefixTable<AddressBytes, Entry>::new_groups(const Prefix<AddressBytes>& prefix) const {
  const Entry* place = first(prefix.address);
  for (std::size_t covered = 24; covered < prefix.bits; covered += 8) {
    if (!is_group(*place)) return (prefix.bits - covered + 7) / 8;
    place = next(*place, prefix.address, covered / 8);
  }
  return 0;
}

template <std::size_t AddressBytes, class Entry>
bool PrefixTable<AddressBytes, Entry>::add(const Prefix<AddressBytes>& prefix) {
  if (prefix.bits < longest_ || prefix.bits > 8 * AddressBytes || prefix.next_hop >= kHops) {
    fail("a prefix of {} bits for next hop {} (allowed: {}, as the prefix before, to {} bits; next hops below {})",
         prefix.bits, prefix.next_hop, longest_, 8 * AddressBytes, kHops);
  }
  if (new_groups(prefix) > groups_ - used_) return false;
  longest_ = prefix.bits;
  Entry* table = entries_;
  std::size_t index = first_index(prefix.address), covered = 24;
  for (; covered < prefix.bits; covered += 8) {
    if (!is_group(table[index])) {
      std::fill_n(group(used_), kGroupEntries, table[index]);
      table[index] = static_cast<Entry>(kGroup | used_++);
    }
    table = group(table[index] & static_cast<Entry>(~kGroup));
    index = prefix.address[covered / 8];
  }
  // All earlier prefixes are as short or shorter, so none of the covered entries has a group.
  const std::size_t span = std::size_t{1} << (covered - prefix.bits);
  std::fill_n(table + (index & ~(span - 1)), span, static_cast<Entry>(prefix.next_hop + 1));
  return true;
}

using Lpm4 = PrefixTable<4, std::uint16_t>;
using Lpm6 = PrefixTable<16, std::uint32_t>;

}  // namespace verbscope::lookups
