// The memory of kv_atomic: page-aligned records that begin with a value, the places of their locks, the bytes of each
// version, and the words of locks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <unordered_set>

#include "common/hash.hpp"
#include "common/units.hpp"

namespace verbscope {

inline constexpr std::uint64_t kKvWord = 8;       // bytes of a lock, and of each piece of a value
inline constexpr std::uint64_t kKvRecord = 4096;  // bytes: records begin on multiples of it
inline constexpr std::uint64_t kMaxKvVersions = std::uint64_t{1} << 32;

// The places of the locks: in the last word of each record, in a word behind the value that the key chooses, or in a
// table of words behind all records.
enum class LockPlacement : std::uint8_t { same, hashed, apart };

class KvLayout {
 public:
  // `value_bytes` is a multiple of kKvWord.
  KvLayout(std::uint64_t keys, std::uint64_t value_bytes, LockPlacement placement);

  // Offsets from the first byte of the region, which lies on a page.
  std::uint64_t value_of(std::uint64_t key) const { return key * stride_; }
  std::uint64_t lock_of(std::uint64_t key) const {
    if (placement_ == LockPlacement::apart) return keys_ * stride_ + key * kKvWord;
    const std::uint64_t places = (stride_ - value_bytes_) / kKvWord;
    const std::uint64_t place = placement_ == LockPlacement::same ? places - 1 : (mix(key) >> 32) * places >> 32;
    return key * stride_ + value_bytes_ + place * kKvWord;
  }

  std::uint64_t keys() const { return keys_; }
  std::uint64_t region_bytes() const;

 private:
  std::uint64_t keys_, value_bytes_;
  std::uint64_t stride_;  // bytes from a record to the next
  LockPlacement placement_;
};

// A lock is a pair of counts (a ticket lock): PUTs that began, in the low half, and PUTs that ended, in the high half.
// A client that adds to the first receives a ticket, and holds the lock when the second equals it.
inline constexpr std::uint64_t kTakeTicket = 1;
inline constexpr std::uint64_t kServeNext = std::uint64_t{1} << 32;
constexpr std::uint32_t next_ticket(std::uint64_t lock) {
  return static_cast<std::uint32_t>(lock);
}
constexpr std::uint32_t now_served(std::uint64_t lock) {
  return static_cast<std::uint32_t>(lock >> 32);
}

// The check of the bytes that were read under a key.
enum class KvFinding : std::uint8_t {
  consistent,  // every word is that of the key and one version
  torn,        // every word is of the key, but not of one version
  wrong        // some word is of no version of the key
};
struct KvReading {
  KvFinding finding = KvFinding::wrong;
  std::uint64_t version = 0;  // the version of the first word
};

// The bytes of each version of each value. Every word is the version, hidden under a mask that depends on seed, key and
// place, so that any word says which version it is of, and that it is not of another key.
class KvValues {
 public:
  KvValues(std::uint64_t seed, std::uint64_t value_bytes) : seed_(mix(seed)), words_(value_bytes / kKvWord) {}

  void fill(std::byte* value, std::uint64_t key, std::uint64_t version) const;
  KvReading look_at(const std::byte* value, std::uint64_t key) const;

 private:
  std::uint64_t mask(std::uint64_t key, std::uint64_t place) const { return mix(seed_ ^ mix(key * words_ + place)); }

  std::uint64_t seed_;
  std::uint64_t words_;
};

inline KvLayout::KvLayout(std::uint64_t keys, std::uint64_t value_bytes, LockPlacement placement)
    : keys_(keys),
      value_bytes_(value_bytes),
      stride_(round_up(value_bytes + (placement == LockPlacement::apart ? 0 : kKvWord), kKvRecord)),
      placement_(placement) {}

inline std::uint64_t KvLayout::region_bytes() const {
  return keys_ * (stride_ + (placement_ == LockPlacement::apart ? kKvWord : 0));
}

// The lock slots that the locks of a region at `address` lead to, when the slot is the lowest `bits` bits of the
// address, as Kalia et al., ATC 2016, section 5.4, infer for Connect-IB (12). `bits` is below 64.
inline std::uint64_t distinct_lock_slots(const KvLayout& layout, std::uint64_t address, std::uint32_t bits) {
  const std::uint64_t mask = (std::uint64_t{1} << bits) - 1;
  std::unordered_set<std::uint64_t> slots;
  for (std::uint64_t key = 0; key < layout.keys(); ++key) slots.insert((address + layout.lock_of(key)) & mask);
  return slots.size();
}

inline void KvValues::fill(std::byte* value, std::uint64_t key, std::uint64_t version) const {
  for (std::uint64_t place = 0; place < words_; ++place) {
    const std::uint64_t word = mask(key, place) ^ version;
    std::memcpy(value + place * kKvWord, &word, kKvWord);
  }
}

inline KvReading KvValues::look_at(const std::byte* value, std::uint64_t key) const {
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
