// MICA's cache as HERD uses it (Kalia, Kaminsky and Andersen, SIGCOMM 2014, section 4.1): a lossy index of buckets with
// eight slots, each bucket one cache line, and a circular log of the items. Items are lost in two ways: the index
// evicts a slot if a bucket is full, and the log overwrites its oldest items. A store belongs to one thread. A GET
// needs two accesses, bucket and item; a PUT of a new item needs one, because the end of the log is cached.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "lookups/interleave.hpp"
#include "machine/memory.hpp"

namespace verbscope::lookups {

// The hash that identifies a key of any length. Its last byte in memory is not 0: servers detect a request by that
// byte.
struct KeyHash {
  std::uint64_t low = 0;   // 32 bits select the bucket, 16 the server, 16 are the tag
  std::uint64_t high = 0;  // distinguishes keys only

  constexpr std::uint32_t bucket() const { return static_cast<std::uint32_t>(low); }
  constexpr std::uint16_t server() const { return static_cast<std::uint16_t>(low >> 32); }
  constexpr std::uint16_t tag() const { return static_cast<std::uint16_t>(low >> 48); }
  constexpr bool none() const { return (low | high) == 0; }
  friend bool operator==(const KeyHash&, const KeyHash&) = default;
};

enum class MicaEnd : std::uint8_t {
  hit,          // GET
  no_slot,      // GET: no slot of the bucket has the tag
  other_key,    // GET: the slot with the tag belongs to another key
  log_lost,     // GET: the log has overwritten the item
  overwritten,  // PUT: in place, because the old value had this length
  inserted,     // PUT: appended to the log and entered in the index
  refused,      // key 0, or a value longer than kMaxValue
};

// Running totals of a store.
struct MicaCounts {
  std::uint64_t hits = 0;     // GETs
  std::uint64_t no_slot = 0;  // GETs that failed, by MicaEnd
  std::uint64_t other_key = 0;
  std::uint64_t log_lost = 0;
  std::uint64_t puts = 0;
  std::uint64_t overwritten = 0;
  std::uint64_t index_evictions = 0;  // PUTs into a full bucket: evicted a slot whose item was still in the log
  std::uint64_t tag_evictions = 0;    // PUTs that took over the slot of another key with the same tag
  std::uint64_t log_overwrites = 0;   // items that the log has overwritten, also those without a slot
  std::uint64_t never_lost = 0;       // GETs that failed although no item of their key was lost
};

class MicaStore {
 public:
  static constexpr std::size_t kSlots = 8;
  static constexpr std::size_t kHead = 18;        // bytes of an item before its value: keyhash 16, length 2
  static constexpr std::size_t kMaxValue = 1000;  // bytes; the limit of HERD
  static constexpr std::size_t kMaxItem = 1024;

  // `buckets`: a power of two from 1 to 2^32; `log`: a power of two from 2048 to 2^39.
  MicaStore(std::uint64_t buckets, Bytes log, PageSize pages);

  // The size of an item in the log.
  static constexpr std::size_t item_bytes(std::size_t value) { return (kHead + value + 7) / 8 * 8; }

  // The two places that an operation reads and that are probably not cached: the bucket, and the item that the bucket
  // refers to (null if none). To process a batch: prefetch the bucket of each key; then read the buckets and prefetch
  // the items (also the second line of items that have one); then call get or put.
  const void* bucket_place(const KeyHash& key) const { return bucket_of(key); }
  const std::byte* item_place(const KeyHash& key) const { return find(key).item; }

  // The item of a key in the index when the bucket was read; null if there is none.
  struct Found {
    const std::byte* item = nullptr;
    std::uint64_t head = kNothing;  // head of the log then; while it is unchanged, the item is valid
  };
  Found find(const KeyHash& key) const;
  // A GET of a key that find() returned before. Returns the item, which is valid until the next put, or null. Searches
  // the index again only if something was appended since.
  [[gnu::always_inline]] const std::byte* hit(const KeyHash& key, const Found& found) {
    if (found.head != head_) [[unlikely]]
      return hit(key);
    if (!has_key(found.item, key)) [[unlikely]]
      return miss(key, MicaEnd::other_key), nullptr;
    ++counts_.hits;
    return found.item;
  }
  static std::span<const std::byte> value_in(const std::byte* item) { return {item + kHead, length_of(item)}; }

  // The operations. They search the index again, because an operation in between may have changed it. `value`: a buffer
  // of kMaxValue bytes; `length`: length of the value after a hit.
  MicaEnd get(const KeyHash& key, std::byte* value, std::size_t& length);
  MicaEnd put(const KeyHash& key, std::span<const std::byte> value);

  // True if a PUT of a value of this length loses no item, nor the order of the log: it overwrites in place, or there
  // is a free slot, and the log never began anew.
  bool has_room(const KeyHash& key, std::size_t value) const;
  // Calls visit(key, value) for each item of a store that has lost none, in the order of their first PUTs.
  template <class Visit>
  void for_each(Visit visit) const {
    for (std::uint64_t offset = tail_; offset < head_; offset += item_bytes(length_of(at(offset)))) {
      KeyHash key;
      std::memcpy(&key, at(offset), sizeof key);
      visit(key, value_in(at(offset)));
    }
  }

  // True if an item of the key may have been evicted or overwritten. False is certain. Of the keys in one bucket, one
  // in 64 shares its bit with another.
  bool may_have_lost(const KeyHash& key) const { return (lost_of(key) & lost_bit(key)) != 0; }

  const MicaCounts& counts() const { return counts_; }
  std::uint64_t buckets() const { return mask_ + 1; }
  const Buffer& log_memory() const { return log_memory_; }

 private:
  // A slot: bit 63 in use, 16 bits of tag from bit 40, below them the item's offset. Offsets only grow; the place in
  // the log is the offset modulo the log's size.
  using Slot = std::uint64_t;
  struct alignas(64) Bucket {
    std::array<Slot, kSlots> slots;
  };
  static_assert(sizeof(Bucket) == 64);
  static constexpr Slot kInUse = Slot{1} << 63;
  static constexpr int kTagShift = 40;
  static constexpr Slot kOffsetMask = (Slot{1} << kTagShift) - 1;
  static constexpr std::uint64_t kNothing = ~std::uint64_t{0};  // not a valid head of the log
  static constexpr Slot mark_of(const KeyHash& key) { return kInUse | Slot{key.tag()} << kTagShift; }

  Bucket* bucket_of(const KeyHash& key) const { return index_ + (key.bucket() & mask_); }
  Slot* slot_with_tag(const KeyHash& key) const {
    for (Slot& slot : bucket_of(key)->slots) {
      if ((slot ^ mark_of(key)) >> kTagShift == 0) return &slot;
    }
    return nullptr;
  }
  // The address of an item, by its offset or its slot.
  std::byte* at(std::uint64_t offset) const { return log_ + (offset & log_mask_); }
  // True if the log still contains the item at the slot's offset, of which the slot has the low 40 bits.
  bool in_log(Slot slot) const { return ((head_ - slot) & kOffsetMask) <= capacity_; }
  static bool has_key(const std::byte* item, const KeyHash& key) { return std::memcmp(item, &key, sizeof key) == 0; }
  static std::uint16_t length_of(const std::byte* item) {
    std::uint16_t length = 0;
    std::memcpy(&length, item + sizeof(KeyHash), sizeof length);
    return length;
  }

  // Lost keys: one word per bucket; bits of the hash that do not select the bucket select the bit.
  std::uint64_t& lost_of(const KeyHash& key) const {
    return reinterpret_cast<std::uint64_t*>(lost_memory_.data())[key.bucket() & mask_];
  }
  static constexpr std::uint64_t lost_bit(const KeyHash& key) { return std::uint64_t{1} << (key.high & 63); }
  void note_loss(const std::byte* item) {
    KeyHash key;
    std::memcpy(&key, item, sizeof key);
    lost_of(key) |= lost_bit(key);
  }

  // Counts a failed GET by its result.
  MicaEnd miss(const KeyHash& key, MicaEnd end);
  // A GET without copying the value. `item` is null if it is not a hit. Counts it.
  MicaEnd look_up(const KeyHash& key, const std::byte*& item);
  const std::byte* hit(const KeyHash& key);
  Slot& slot_for(const KeyHash& key);
  std::uint64_t append(const KeyHash& key, std::span<const std::byte> value);
  void overwrite_until(std::uint64_t end);

  Buffer index_memory_;
  Buffer log_memory_;
  Buffer lost_memory_;
  Bucket* index_;
  std::byte* log_;
  std::uint64_t mask_;
  std::uint64_t capacity_;
  std::uint64_t log_mask_;
  std::uint64_t head_ = 0;  // offset of the next item
  std::uint64_t tail_ = 0;  // offset of the oldest complete item
  MicaCounts counts_;
};

[[gnu::always_inline]] inline MicaStore::Found MicaStore::find(const KeyHash& key) const {
#pragma GCC unroll 8
  for (const Slot slot : bucket_of(key)->slots) {
    const std::uint64_t offset = slot ^ mark_of(key);
    if (offset <= kOffsetMask) [[likely]] {
      if (!in_log(offset)) [[unlikely]]
        return {};
      return {at(offset), head_};
    }
  }
  return {};
}

}  // namespace verbscope::lookups
