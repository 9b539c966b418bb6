#include "lookups/cuckoo.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "common/error.hpp"

namespace verbscope::lookups {

namespace {

constexpr std::size_t kMaxMoves = 500;

}  // namespace

Cuckoo::Cuckoo(Bytes bytes, PageSize pages)
    : memory_(bytes, pages), table_(reinterpret_cast<Bucket*>(memory_.data())), mask_(bytes.value / 64 - 1) {
  if (!std::has_single_bit(bytes.value) || bytes.value < 128) {
    fail("a cuckoo table of {} bytes: a power of two of 128 at least", bytes.value);
  }
}

std::size_t Cuckoo::used(std::size_t bucket) const {
  return static_cast<std::size_t>(kSlots - std::ranges::count(table_[bucket].keys, Key{0}));
}

bool Cuckoo::put(std::size_t bucket, Key key, std::uint32_t value) {
  Bucket& b = table_[bucket];
  const auto free = std::ranges::find(b.keys, Key{0});
  if (free == b.keys.end()) return false;
  *free = key;
  b.values[static_cast<std::size_t>(free - b.keys.begin())] = value;
  return true;
}

Cuckoo::Inserted Cuckoo::insert(Key key, std::uint32_t value) {
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
