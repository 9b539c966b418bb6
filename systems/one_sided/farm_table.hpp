// The table of a store after FaRM's (Dragojevic, Narayanan, Hodson and Castro, NSDI 2014; Kalia et al., SIGCOMM 2014,
// section 5.1.2), which clients READ without the server's CPU: hopscotch hashing with a neighbourhood of 6 slots, all
// of which one READ brings. A slot has the key and the value, or the key and where the value lies, which another READ
// brings. Values are objects of lines with versions (below).
//
// Half of the slots are used. A key that finds no place in the neighbourhood of its first home goes to that of a second
// one, which a client READs when it has missed the key in the first. Keys are there from the beginning: slots do not
// move while clients READ them.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
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

// Objects that clients READ while the server's CPU writes them, after FaRM: each cache line of an object begins with
// its version, so that a READ, which sees each line as a whole but the lines at different times, knows whether it has
// one version of all of them.
//
// A version is odd while its line is written, and goes up by two with each write. The version of the first line is also
// the lock of the object: who makes it odd may write. A line's bytes change while its version is odd alone, so that
// lines whose versions are even and the same are of one write.
inline constexpr std::uint64_t kLineBytes = kCacheLine.value - sizeof(std::uint64_t);  // bytes of the object in a line

constexpr std::uint64_t lines_of(std::uint64_t bytes) {
  return divide_up(bytes, kLineBytes);
}

inline std::atomic_ref<std::uint64_t> version_of(std::byte* line) {
  return std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(line));
}

// Copies an object of `bytes` bytes from a private copy of its lines to `object`, which may be the same address.
// Returns its version, or nothing if the lines are not of one version.
inline std::optional<std::uint64_t> read_object(const std::byte* lines, std::uint64_t bytes, std::byte* object) {
  std::uint64_t version = 0;
  bool whole = true;
  for (std::uint64_t line = 0, at = 0; at < bytes; ++line, at += kLineBytes) {
    std::uint64_t own = 0;
    std::memcpy(&own, lines + line * kCacheLine.value, sizeof own);
    if (line == 0) version = own;
    whole = whole && own == version && own % 2 == 0;
    std::memmove(object + at, lines + line * kCacheLine.value + sizeof own, std::min(kLineBytes, bytes - at));
  }
  return whole ? std::optional(version) : std::nullopt;
}

// Writes an object before the run.
inline void lay_object(std::byte* lines, std::uint64_t bytes, const std::byte* object) {
  for (std::uint64_t line = 0, at = 0; at < bytes; ++line, at += kLineBytes) {
    std::memset(lines + line * kCacheLine.value, 0, sizeof(std::uint64_t));
    std::memcpy(lines + line * kCacheLine.value + sizeof(std::uint64_t), object + at, std::min(kLineBytes, bytes - at));
  }
}

// Writes an object, which others may READ and write at the same time, except its first `unchanged` bytes, less than a
// line. In a simulation other nodes advance between lines, as on a host.
template <Node N>
void write_object(N& node, std::byte* lines, std::uint64_t unchanged, const std::byte* rest, std::uint64_t rest_bytes) {
  constexpr Nanos kRetry = std::chrono::nanoseconds(50);  // between looks at a lock that another thread has
  const std::uint64_t bytes = unchanged + rest_bytes;
  for (std::uint64_t line = 0; line < lines_of(bytes); ++line) node.prefetch(lines + line * kCacheLine.value);
  node.load(lines);
  std::uint64_t version = version_of(lines).load(std::memory_order_relaxed);
  while (version % 2 != 0 || !version_of(lines).compare_exchange_strong(version, version + 1, std::memory_order_acquire,
                                                                        std::memory_order_relaxed)) {
    if (version % 2 == 0) continue;
    node.poll_memory();
    node.idle_until(node.now() + kRetry);
    version = version_of(lines).load(std::memory_order_relaxed);
  }
  for (std::uint64_t line = 0, at = 0; at < bytes; ++line, at += kLineBytes) {
    std::byte* const begin = lines + line * kCacheLine.value;
    if (line > 0) {
      node.load(begin);
      node.poll_memory(0);
      version_of(begin).store(version + 1, std::memory_order_relaxed);
    }
    std::atomic_thread_fence(std::memory_order_release);
    const std::uint64_t first = line == 0 ? unchanged : 0;
    std::memcpy(begin + sizeof version + first, rest + (at + first - unchanged),
                std::min(kLineBytes, bytes - at) - first);
    if (line > 0) version_of(begin).store(version + 2, std::memory_order_release);
  }
  version_of(lines).store(version + 2, std::memory_order_release);
}

class FarmGet;
class FarmPuts;

class FarmTable {
 public:
  using Get = FarmGet;
  using Puts = FarmPuts;
  static constexpr std::uint32_t kNeighbourhood = 6;
  static constexpr std::uint32_t kHomes = 2;
  static constexpr std::uint64_t kKeyBytes = kStoreKeyBytes;
  static constexpr std::uint64_t kPointerBytes = 8;

  // `apart`: a slot has a pointer to the value.
  FarmTable(std::uint64_t keys, std::uint32_t value_bytes, bool apart);

  bool apart() const { return apart_; }
  std::uint32_t value_bytes() const { return value_bytes_; }
  std::uint64_t slot_bytes() const { return slot_bytes_; }
  std::uint32_t largest_read() const {
    return static_cast<std::uint32_t>(std::max(kNeighbourhood * slot_bytes_, apart_ ? object_bytes() : 0));
  }
  std::uint64_t object_bytes() const { return lines_of(value_bytes_) * kCacheLine.value; }  // of a value apart
  std::uint64_t region_bytes() const { return objects_at() + (apart_ ? keys_ * object_bytes() : 0); }

  // Offsets in the region. A neighbourhood begins at the home of its keys.
  RegionPiece neighbourhood(const lookups::KeyHash& key, std::uint32_t which) const {
    return {slot_at(home(key, which)), static_cast<std::uint32_t>(kNeighbourhood * slot_bytes_)};
  }
  std::uint64_t object_at(std::uint64_t number) const { return objects_at() + number * object_bytes(); }

  // Where the slot of `key` begins among the bytes of a neighbourhood; nothing: it is not there.
  std::optional<std::uint64_t> slot_of(const std::byte* neighbourhood, const lookups::KeyHash& key) const {
    for (std::uint64_t at = 0; at < kNeighbourhood * slot_bytes_; at += slot_bytes_) {
      if (std::memcmp(key_in(neighbourhood + at), &key, sizeof key) == 0) return at;
    }
    return std::nullopt;
  }
  // The number of the value's object that a slot points to.
  static std::uint64_t pointer_in(const std::byte* slot) {
    std::uint64_t number;
    std::memcpy(&number, slot + kKeyBytes, sizeof number);
    return number;
  }

  // Puts all contents into the zeroed region. Throws Error when they find no places.
  void fill(std::span<std::byte> region, const TableContents& contents) const;

 private:
  static constexpr std::uint32_t kFreeSlot = 0xffffffff;
  static constexpr std::uint64_t kSlotsOfKey = 2;  // half of the slots are used

  std::uint64_t home(const lookups::KeyHash& key, std::uint32_t which) const {
    return (mix(key.low + which * kMixStep) >> 32) * homes_ >> 32;
  }
  std::uint64_t slot_at(std::uint64_t slot) const { return slot * slot_bytes_; }
  std::uint64_t slots() const { return homes_ + kNeighbourhood - 1; }
  std::uint64_t objects_at() const { return round_up(slots() * slot_bytes_, kCacheLine.value); }
  // A key is an object's first bytes, behind the line's version; a slot with a pointer has no version: it never
  // changes.
  const std::byte* key_in(const std::byte* slot) const { return slot + (apart_ ? 0 : sizeof(std::uint64_t)); }

  struct Placing;

  std::uint64_t keys_, homes_;
  std::uint32_t value_bytes_;
  bool apart_;
  std::uint64_t slot_bytes_;
};

// A GET of a client.
class FarmGet {
 public:
  RegionPiece begin(const FarmTable& table, const lookups::KeyHash& key) {
    key_ = key;
    which_ = 0;
    at_object_ = false;
    return table.neighbourhood(key, 0);
  }

  // `got` holds what `piece` asked for. An object's lines become the object where they lie.
  GetStep take(const FarmTable& table, std::byte* got, RegionPiece& piece, GetCounts& counts) {
    if (at_object_) {
      counts.values.count(piece);
      return check(read_object(got, table.value_bytes(), got), got, counts);
    }
    counts.probes.count(piece);
    const std::optional<std::uint64_t> place = table.slot_of(got, key_);
    if (!place) {
      if (++which_ == FarmTable::kHomes) return GetStep::missing();
      piece = table.neighbourhood(key_, which_);
      return GetStep::on();
    }
    std::byte* const slot = got + *place;
    if (!table.apart()) {
      const std::uint64_t bytes = FarmTable::kKeyBytes + table.value_bytes();
      return check(read_object(slot, bytes, slot), slot + FarmTable::kKeyBytes, counts);
    }
    at_object_ = true;
    piece = {table.object_at(FarmTable::pointer_in(slot)), static_cast<std::uint32_t>(table.object_bytes())};
    return GetStep::on();
  }

 private:
  // A torn object is READ again, where it was.
  static GetStep check(const std::optional<std::uint64_t>& version, const std::byte* value, GetCounts& counts) {
    if (version) return GetStep::found(value);
    ++counts.torn;
    return GetStep::on();
  }

  lookups::KeyHash key_;
  std::uint32_t which_ = 0;
  bool at_object_ = false;
};

// The PUTs of one of the server's threads.
class FarmPuts {
 public:
  FarmPuts(const FarmTable& table, std::byte* region) : table_(table), region_(region) {}

  // False if there is no such key.
  template <Node N>
  bool put(N& node, const lookups::KeyHash& key, const std::byte* value) {
    for (std::uint32_t which = 0; which < FarmTable::kHomes; ++which) {
      const RegionPiece near = table_.neighbourhood(key, which);
      std::byte* const begin = region_ + near.offset;
      for (std::uint64_t at = 0; at < near.bytes; at += kCacheLine.value) node.prefetch(begin + at);
      for (std::uint64_t at = 0; at < near.bytes; at += kCacheLine.value) node.load(begin + at);
      const std::optional<std::uint64_t> place = table_.slot_of(begin, key);
      if (!place) continue;
      if (table_.apart()) {
        const std::uint64_t object = table_.object_at(FarmTable::pointer_in(begin + *place));
        write_object(node, region_ + object, 0, value, table_.value_bytes());
      } else {
        write_object(node, begin + *place, sizeof key, value, table_.value_bytes());
      }
      return true;
    }
    return false;
  }

 private:
  FarmTable table_;
  std::byte* region_;
};

inline FarmTable::FarmTable(std::uint64_t keys, std::uint32_t value_bytes, bool apart)
    : keys_(keys),
      homes_(kSlotsOfKey * keys),
      value_bytes_(value_bytes),
      apart_(apart),
      slot_bytes_(apart ? kKeyBytes + kPointerBytes : lines_of(kKeyBytes + value_bytes) * kCacheLine.value) {
  if (homes_ >= kFreeSlot) fail("a hopscotch table of {} keys has too many slots: fewer than 2^32 are allowed", keys);
}

// The key in each slot, and the beginning of its neighbourhood.
struct FarmTable::Placing {
  std::vector<std::uint32_t> owners;
  std::vector<std::uint32_t> homes;

  // Moves free slots towards `begin` until one is in its neighbourhood, as hopscotch hashing does. Returns that slot.
  std::optional<std::uint64_t> make_room(std::uint64_t begin) {
    std::uint64_t free = begin;
    while (free < owners.size() && owners[free] != kFreeSlot) ++free;
    if (free == owners.size()) return std::nullopt;
    while (free - begin >= kNeighbourhood) {
      const std::uint64_t first = free - (kNeighbourhood - 1);
      std::uint64_t moved = first;
      while (moved < free && homes[moved] + kNeighbourhood <= free) ++moved;
      if (moved == free) return std::nullopt;
      owners[free] = std::exchange(owners[moved], kFreeSlot);
      homes[free] = homes[moved];
      free = moved;
    }
    return free;
  }
};

inline void FarmTable::fill(std::span<std::byte> region, const TableContents& contents) const {
  Placing placing{std::vector<std::uint32_t>(slots(), kFreeSlot), std::vector<std::uint32_t>(slots())};
  for (std::uint64_t i = 0; i < keys_; ++i) {
    const lookups::KeyHash key = contents.hash_of(i);
    std::optional<std::uint64_t> slot;
    for (std::uint32_t which = 0; which < kHomes && !slot; ++which) {
      slot = placing.make_room(home(key, which));
      if (slot) placing.homes[*slot] = static_cast<std::uint32_t>(home(key, which));
    }
    if (!slot) fail("a hopscotch table of {} keys has no slot for key {}", keys_, i);
    placing.owners[*slot] = static_cast<std::uint32_t>(i);
  }
  std::vector<std::byte> object(kKeyBytes + value_bytes_);
  for (std::uint64_t s = 0; s < slots(); ++s) {
    if (placing.owners[s] == kFreeSlot) continue;
    const std::uint64_t number = placing.owners[s];
    const lookups::KeyHash key = contents.hash_of(number);
    std::memcpy(object.data(), &key, sizeof key);
    contents.fill_value(number, object.data() + kKeyBytes);
    std::byte* const slot = region.data() + slot_at(s);
    if (apart_) {
      std::memcpy(slot, &key, sizeof key);
      std::memcpy(slot + kKeyBytes, &number, sizeof number);
      lay_object(region.data() + object_at(number), value_bytes_, object.data() + kKeyBytes);
    } else {
      lay_object(slot, object.size(), object.data());
    }
  }
}

}  // namespace verbscope
