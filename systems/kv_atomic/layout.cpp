#include "systems/kv_atomic/layout.hpp"

#include <cstring>
#include <unordered_set>

#include "common/units.hpp"

namespace verbscope {

KvLayout::KvLayout(std::uint64_t keys, std::uint64_t value_bytes, LockPlacement placement)
    : keys_(keys),
      value_bytes_(value_bytes),
      stride_(round_up(value_bytes + (placement == LockPlacement::apart ? 0 : kKvWord), kKvRecord)),
      placement_(placement) {}

std::uint64_t KvLayout::region_bytes() const {
  return keys_ * (stride_ + (placement_ == LockPlacement::apart ? kKvWord : 0));
}

std::uint64_t distinct_lock_slots(const KvLayout& layout, std::uint64_t address, std::uint32_t bits) {
  const std::uint64_t mask = (std::uint64_t{1} << bits) - 1;
  std::unordered_set<std::uint64_t> slots;
  for (std::uint64_t key = 0; key < layout.keys(); ++key) slots.insert((address + layout.lock_of(key)) & mask);
  return slots.size();
}

void KvValues::fill(std::byte* value, std::uint64_t key, std::uint64_t version) const {
  for (std::uint64_t place = 0; place < words_; ++place) {
    const std::uint64_t word = mask(key, place) ^ version;
    std::memcpy(value + place * kKvWord, &word, kKvWord);
  }
}

KvReading KvValues::look_at(const std::byte* value, std::uint64_t key) const {
  KvReading reading{KvFinding::consistent, 0};
  for (std::uint64_t place = 0; place < words_; ++place) {
    std::uint64_t word;
    std::memcpy(&word, value + place * kKvWord, kKvWord);
    const std::uint64_t version = mask(key, place) ^ word;
    if (version >= kMaxKvVersions) return {KvFinding::wrong, 0};
    if (place == 0) reading.version = version;
    if (version != reading.version) reading.finding = KvFinding::torn;
  }
  return reading;
}

}  // namespace verbscope
