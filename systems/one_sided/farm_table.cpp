#include "systems/one_sided/farm_table.hpp"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "common/error.hpp"
#include "common/units.hpp"

namespace verbscope {

namespace {

constexpr std::uint32_t kFreeSlot = 0xffffffff;
constexpr std::uint64_t kSlotsOfKey = 2;  // half of the slots are used

}  // namespace

FarmTable::FarmTable(std::uint64_t keys, std::uint32_t value_bytes, bool apart)
    : keys_(keys),
      homes_(kSlotsOfKey * keys),
      value_bytes_(value_bytes),
      apart_(apart),
      slot_bytes_(apart ? kKeyBytes + kPointerBytes : lines_of(kKeyBytes + value_bytes) * kObjectLine) {
  if (homes_ >= kFreeSlot) fail("a table of {} keys: it has fewer than 2^32 slots", keys);
}

// Which key lies in which slot, and where its neighbourhood begins.
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

void FarmTable::fill(std::span<std::byte> region, const TableContents& contents) const {
  Placing placing{std::vector<std::uint32_t>(slots(), kFreeSlot), std::vector<std::uint32_t>(slots())};
  for (std::uint64_t i = 0; i < keys_; ++i) {
    const lookups::KeyHash key = contents.hash_of(i);
    std::optional<std::uint64_t> slot;
    for (std::uint32_t which = 0; which < kHomes && !slot; ++which) {
      slot = placing.make_room(home(key, which));
      if (slot) placing.homes[*slot] = static_cast<std::uint32_t>(home(key, which));
    }
    if (!slot) fail("a hopscotch table of {} keys: key {} finds no place", keys_, i);
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
