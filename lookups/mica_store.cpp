#include "lookups/mica_store.hpp"

#include <algorithm>
#include <bit>

#include "common/error.hpp"

namespace verbscope::lookups {

namespace {

constexpr std::uint64_t kMaxLog = std::uint64_t{1} << 39;

}  // namespace

MicaStore::MicaStore(std::uint64_t buckets, Bytes log, PageSize pages)
    : index_memory_(Bytes(buckets * sizeof(Bucket)), pages),
      log_memory_(log, pages),
      lost_memory_(Bytes(buckets * sizeof(std::uint64_t)), pages),
      index_(reinterpret_cast<Bucket*>(index_memory_.data())),
      log_(log_memory_.data()),
      mask_(buckets - 1),
      capacity_(log.value),
      log_mask_(log.value - 1) {
  if (!std::has_single_bit(buckets) || buckets > std::uint64_t{1} << 32) {
    fail("a store of {} buckets (allowed: a power of two up to 2^32)", buckets);
  }
  if (!std::has_single_bit(capacity_) || capacity_ < 2 * kMaxItem || capacity_ > kMaxLog) {
    fail("a store with a log of {} bytes (allowed: a power of two from {} to 2^39)", capacity_, 2 * kMaxItem);
  }
}

MicaEnd MicaStore::miss(const KeyHash& key, MicaEnd end) {
  ++(end == MicaEnd::no_slot ? counts_.no_slot : end == MicaEnd::other_key ? counts_.other_key : counts_.log_lost);
  if (!may_have_lost(key)) ++counts_.never_lost;
  return end;
}

MicaEnd MicaStore::look_up(const KeyHash& key, const std::byte*& item) {
  item = nullptr;
  if (key.none()) return MicaEnd::refused;
  const Slot* const slot = slot_with_tag(key);
  if (slot == nullptr) return miss(key, MicaEnd::no_slot);
  if (!in_log(*slot)) return miss(key, MicaEnd::log_lost);
  if (!has_key(at(*slot), key)) return miss(key, MicaEnd::other_key);
  item = at(*slot);
  return ++counts_.hits, MicaEnd::hit;
}

const std::byte* MicaStore::hit(const KeyHash& key) {
  const std::byte* item = nullptr;
  look_up(key, item);
  return item;
}

MicaEnd MicaStore::get(const KeyHash& key, std::byte* value, std::size_t& length) {
  const std::byte* item = nullptr;
  const MicaEnd end = look_up(key, item);
  if (item == nullptr) return end;
  length = length_of(item);
  std::memcpy(value, item + kHead, length);
  return end;
}

bool MicaStore::has_room(const KeyHash& key, std::size_t value) const {
  if (const Slot* const there = slot_with_tag(key)) return has_key(at(*there), key) && length_of(at(*there)) == value;
  const auto& slots = bucket_of(key)->slots;
  return head_ + kMaxItem <= capacity_ && std::ranges::any_of(slots, [](Slot slot) { return (slot & kInUse) == 0; });
}

MicaEnd MicaStore::put(const KeyHash& key, std::span<const std::byte> value) {
  if (key.none() || value.size() > kMaxValue) return MicaEnd::refused;
  ++counts_.puts;
  const Slot* const there = slot_with_tag(key);
  if (there != nullptr && in_log(*there)) {
    std::byte* const item = at(*there);
    if (has_key(item, key) && length_of(item) == value.size()) {
      std::memcpy(item + kHead, value.data(), value.size());
      ++counts_.overwritten;
      return MicaEnd::overwritten;
    }
  }
  const std::uint64_t offset = append(key, value);
  slot_for(key) = mark_of(key) | (offset & kOffsetMask);
  return MicaEnd::inserted;
}

// The slot for a new item of the key: one with its tag, else a free one, else the one selected by the tag. A slot whose
// item the log has overwritten counts as free.
MicaStore::Slot& MicaStore::slot_for(const KeyHash& key) {
  if (Slot* const same = slot_with_tag(key)) {
    if (in_log(*same) && !has_key(at(*same), key)) {
      note_loss(at(*same));
      ++counts_.tag_evictions;
    }
    return *same;
  }
  auto& slots = bucket_of(key)->slots;
  const auto free = std::ranges::find_if(slots, [this](Slot slot) { return (slot & kInUse) == 0 || !in_log(slot); });
  if (free != slots.end()) return *free;
  Slot& evicted = slots[key.tag() % kSlots];
  note_loss(at(evicted));
  ++counts_.index_evictions;
  return evicted;
}

// Appends an item and returns its offset. If the rest of the log may be too short for an item, continues at the
// beginning.
std::uint64_t MicaStore::append(const KeyHash& key, std::span<const std::byte> value) {
  if (capacity_ - (head_ & (capacity_ - 1)) < kMaxItem) head_ = round_up(head_ + 1, capacity_);
  const std::uint64_t offset = head_;
  head_ += item_bytes(value.size());
  overwrite_until(head_);
  std::byte* const item = at(offset);
  const auto length = static_cast<std::uint16_t>(value.size());
  std::memcpy(item, &key, sizeof key);
  std::memcpy(item + sizeof key, &length, sizeof length);
  if (!value.empty()) std::memcpy(item + kHead, value.data(), value.size());
  return offset;
}

// Counts the items that are lost when the log is written up to `end`.
void MicaStore::overwrite_until(std::uint64_t end) {
  while (end - tail_ > capacity_) {
    note_loss(at(tail_));
    ++counts_.log_overwrites;
    tail_ += item_bytes(length_of(at(tail_)));
    if (capacity_ - (tail_ & (capacity_ - 1)) < kMaxItem) tail_ = round_up(tail_ + 1, capacity_);
  }
}

}  // namespace verbscope::lookups
