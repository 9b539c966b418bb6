#include "systems/one_sided/pilaf_table.hpp"

#include <algorithm>
#include <utility>

#include "common/error.hpp"
#include "common/units.hpp"

namespace verbscope {

namespace {

constexpr std::uint32_t kFreeBucket = 0xffffffff;
constexpr std::uint32_t kMaxMoves = 500;
constexpr std::uint64_t kItemAlignment = 8;

}  // namespace

PilafTable::PilafTable(std::uint64_t keys, std::uint32_t value_bytes, std::uint32_t threads)
    : keys_(keys),
      buckets_(std::max<std::uint64_t>(kBuckets, (4 * keys + 2) / 3)),
      items_(keys + std::uint64_t{threads} * kSpares),
      value_bytes_(value_bytes),
      stride_(round_up(value_bytes, kItemAlignment)) {
  if (items_ >= kFreeBucket) fail("a table of {} keys: it has at most 2^32 items", keys);
}

// Returns the key's number for each bucket. A key goes to the first of its buckets that is free, or drives away the
// item of one of them, and so on.
std::vector<std::uint32_t> PilafTable::place_all(const TableContents& contents) const {
  std::vector<std::uint32_t> owners(buckets_, kFreeBucket);
  for (std::uint64_t i = 0; i < keys_; ++i) {
    auto homeless = static_cast<std::uint32_t>(i);
    for (std::uint32_t moves = 0; homeless != kFreeBucket; ++moves) {
      const lookups::KeyHash key = contents.hash_of(homeless);
      std::uint32_t which = 0;
      while (which < kBuckets && owners[bucket_at(key, which) / sizeof(PilafBucket)] != kFreeBucket) ++which;
      if (which == kBuckets) which = static_cast<std::uint32_t>(mix(homeless + moves * kMixStep) % kBuckets);
      if (moves == kMaxMoves) fail("a cuckoo table of {} keys: key {} finds no place", keys_, i);
      std::swap(homeless, owners[bucket_at(key, which) / sizeof(PilafBucket)]);
    }
  }
  return owners;
}

void PilafTable::fill(std::span<std::byte> region, const TableContents& contents) const {
  const std::vector<std::uint32_t> owners = place_all(contents);
  for (std::uint64_t b = 0; b < buckets_; ++b) {
    if (owners[b] == kFreeBucket) continue;
    const lookups::KeyHash key = contents.hash_of(owners[b]);
    const std::span<std::byte> value = region.subspan(item_at(owners[b]), value_bytes_);
    contents.fill_value(owners[b], value.data());
    PilafBucket bucket{.item = owners[b] + 1, .bytes = value_bytes_, .tag = key.high};
    bucket.item_check = item_check(key, value.data());
    bucket.own_check = bucket.check();
    std::memcpy(region.data() + b * sizeof bucket, &bucket, sizeof bucket);
  }
}

PilafPuts::PilafPuts(const PilafTable& table, std::byte* region, std::uint32_t thread)
    : table_(table), region_(region), spares_(PilafTable::kSpares) {
  for (std::uint32_t i = 0; i < PilafTable::kSpares; ++i) spares_[i] = table.spare(thread, i);
}

}  // namespace verbscope
