// The table of a store after FaRM's (Dragojevic, Narayanan, Hodson and Castro, NSDI 2014; Kalia et al., SIGCOMM 2014,
// section 5.1.2), which clients READ without the server's CPU: hopscotch hashing with a neighbourhood of 6 slots, all
// of which one READ brings. A slot has the key and the value, or the key and where the value lies, which another READ
// brings. Values are objects of lines with versions (lines.hpp).
//
// Half of the slots are used. A key that finds no place in the neighbourhood of its first home goes to that of a second
// one, which a client READs when it has missed the key in the first. Keys are there from the beginning: slots do not
// move while clients READ them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "common/hash.hpp"
#include "machine/node.hpp"
#include "systems/one_sided/access.hpp"
#include "systems/one_sided/lines.hpp"

namespace verbscope {

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
  std::uint64_t object_bytes() const { return lines_of(value_bytes_) * kObjectLine; }  // of a value apart
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
  std::uint64_t home(const lookups::KeyHash& key, std::uint32_t which) const {
    return (mix(key.low + which * kMixStep) >> 32) * homes_ >> 32;
  }
  std::uint64_t slot_at(std::uint64_t slot) const { return slot * slot_bytes_; }
  std::uint64_t slots() const { return homes_ + kNeighbourhood - 1; }
  std::uint64_t objects_at() const { return (slots() * slot_bytes_ + kObjectLine - 1) / kObjectLine * kObjectLine; }
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
      return judge(read_object(got, table.value_bytes(), got), got, counts);
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
      return judge(read_object(slot, bytes, slot), slot + FarmTable::kKeyBytes, counts);
    }
    at_object_ = true;
    piece = {table.object_at(FarmTable::pointer_in(slot)), static_cast<std::uint32_t>(table.object_bytes())};
    return GetStep::on();
  }

 private:
  // A torn object is READ again, where it was.
  static GetStep judge(const std::optional<std::uint64_t>& version, const std::byte* value, GetCounts& counts) {
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

  // False: there is no such key.
  template <Node N>
  bool put(N& node, const lookups::KeyHash& key, const std::byte* value) {
    for (std::uint32_t which = 0; which < FarmTable::kHomes; ++which) {
      const RegionPiece near = table_.neighbourhood(key, which);
      std::byte* const begin = region_ + near.offset;
      for (std::uint64_t at = 0; at < near.bytes; at += kObjectLine) node.prefetch(begin + at);
      for (std::uint64_t at = 0; at < near.bytes; at += kObjectLine) node.load(begin + at);
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

}  // namespace verbscope
