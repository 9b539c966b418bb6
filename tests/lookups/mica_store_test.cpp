// MICA's cache: stored and lost items, and their counts.
#include "lookups/mica_store.hpp"

#include <map>
#include <string>

#include "common/error.hpp"
#include "common/hash.hpp"
#include "lookups/mica_gets.hpp"
#include "tests/lookups/variants.hpp"

namespace verbscope::lookups {
namespace {

KeyHash key_at(std::uint32_t bucket, std::uint16_t tag, std::uint64_t high = 1) {
  return {std::uint64_t{tag} << 48 | bucket, high};
}

MicaEnd put(MicaStore& store, const KeyHash& key, const std::string& value) {
  return store.put(key, std::as_bytes(std::span(value)));
}

// The value, or "-" and the result of the failed GET.
std::string get(MicaStore& store, const KeyHash& key) {
  std::array<char, MicaStore::kMaxValue> value;
  std::size_t length = 0;
  const MicaEnd end = store.get(key, reinterpret_cast<std::byte*>(value.data()), length);
  if (end == MicaEnd::hit) return {value.data(), length};
  return end == MicaEnd::no_slot     ? "-no_slot"
         : end == MicaEnd::other_key ? "-other_key"
         : end == MicaEnd::log_lost  ? "-log_lost"
                                     : "-refused";
}

TEST(MicaStore, GetReturnsTheValueThatWasPut) {
  MicaStore store(4, Bytes(4096), PageSize::kb4);
  EXPECT_EQ(get(store, key_at(1, 1)), "-no_slot");
  EXPECT_EQ(put(store, key_at(1, 1), "one"), MicaEnd::inserted);
  EXPECT_EQ(put(store, key_at(1, 2), ""), MicaEnd::inserted);
  EXPECT_EQ(get(store, key_at(1, 1)), "one");
  EXPECT_EQ(get(store, key_at(1, 2)), "");
  EXPECT_EQ(get(store, key_at(2, 1)), "-no_slot");
}

TEST(MicaStore, OverwritesAValueOfTheSameLengthInPlace) {
  MicaStore store(1, Bytes(2048), PageSize::kb4);
  EXPECT_EQ(put(store, key_at(0, 1), "abc"), MicaEnd::inserted);
  for (int i = 0; i < 200; ++i) EXPECT_EQ(put(store, key_at(0, 1), "xyz"), MicaEnd::overwritten);
  EXPECT_EQ(get(store, key_at(0, 1)), "xyz");
  EXPECT_EQ(put(store, key_at(0, 1), "longer"), MicaEnd::inserted);
  EXPECT_EQ(get(store, key_at(0, 1)), "longer");
  EXPECT_EQ(store.counts().overwritten, 200u);
  EXPECT_EQ(store.counts().index_evictions + store.counts().tag_evictions + store.counts().log_overwrites, 0u);
}

// A GET in two steps, with other operations between them.
TEST(MicaStore, SearchesAgainAfterAnAppend) {
  MicaStore store(1, Bytes(2048), PageSize::kb4);
  const auto hit = [&store](const KeyHash& key, const MicaStore::Found& found) -> std::string {
    const std::byte* const item = store.hit(key, found);
    if (item == nullptr) return "-";
    const auto value = MicaStore::value_in(item);
    return {reinterpret_cast<const char*>(value.data()), value.size()};
  };
  const KeyHash key = key_at(0, 1), other = key_at(0, 2);
  const MicaStore::Found none = store.find(key);
  EXPECT_EQ(none.item, nullptr);
  EXPECT_EQ(hit(key, none), "-");
  put(store, key, "abc");
  EXPECT_EQ(hit(key, none), "abc");
  const MicaStore::Found found = store.find(key);
  EXPECT_EQ(hit(key, found), "abc");
  put(store, key, "xyz");  // in place
  EXPECT_EQ(hit(key, found), "xyz");
  put(store, key, "longer");  // appended: the old item is there, and is the key's no more
  EXPECT_EQ(hit(key, found), "longer");
  EXPECT_EQ(hit(key_at(0, 1, 2), store.find(key)), "-");  // another key of the same tag
  const MicaStore::Found last = store.find(key);
  for (int i = 0; i < 100; ++i) put(store, other, std::string(static_cast<std::size_t>(i % 2 + 90), 'x'));
  EXPECT_EQ(hit(key, last), "-");  // the log has overwritten it
  EXPECT_EQ(store.counts().hits, 4u);
  EXPECT_EQ(store.counts().no_slot, 1u);
  EXPECT_EQ(store.counts().other_key, 1u);
  EXPECT_EQ(store.counts().log_lost, 1u);
}

TEST(MicaStore, RejectsKeyZeroAndTooLongValues) {
  MicaStore store(1, Bytes(2048), PageSize::kb4);
  EXPECT_EQ(put(store, KeyHash{}, "x"), MicaEnd::refused);
  EXPECT_EQ(get(store, KeyHash{}), "-refused");
  EXPECT_EQ(put(store, key_at(0, 1), std::string(1001, 'x')), MicaEnd::refused);
  EXPECT_EQ(put(store, key_at(0, 0), std::string(1000, 'x')), MicaEnd::inserted);  // tag 0 is a tag like others
  EXPECT_EQ(get(store, key_at(0, 0)), std::string(1000, 'x'));
  EXPECT_EQ(store.counts().puts, 1u);
}

// Two keys of one tag and bucket: the second takes the slot, and the first is a miss, never the second's value.
TEST(MicaStore, KeysWithTheSameTagEvictEachOther) {
  MicaStore store(1, Bytes(2048), PageSize::kb4);
  put(store, key_at(0, 7, 1), "first");
  EXPECT_EQ(get(store, key_at(0, 7, 2)), "-other_key");
  put(store, key_at(0, 7, 2), "again");  // of the same length: not written over the other's
  EXPECT_EQ(get(store, key_at(0, 7, 1)), "-other_key");
  EXPECT_EQ(get(store, key_at(0, 7, 2)), "again");
  EXPECT_TRUE(store.may_have_lost(key_at(0, 7, 1)));
  EXPECT_FALSE(store.may_have_lost(key_at(0, 7, 2)));
  EXPECT_EQ(store.counts().never_lost, 1u);  // the GET of what had not been put
  EXPECT_EQ(store.counts().tag_evictions, 1u);
  EXPECT_EQ(store.counts().other_key, 2u);
}

// Eight slots: the ninth tag, 9, evicts slot 9 mod 8 = 1, where the second tag, 2, is.
TEST(MicaStore, FullBucketEvictsTheSlotSelectedByTheTag) {
  MicaStore store(1, Bytes(4096), PageSize::kb4);
  const auto key = [](std::uint16_t tag) { return key_at(0, tag, tag); };
  for (std::uint16_t tag = 1; tag <= 9; ++tag) put(store, key(tag), "v" + std::to_string(tag));
  EXPECT_EQ(store.counts().index_evictions, 1u);
  for (std::uint16_t tag = 1; tag <= 9; ++tag) {
    EXPECT_EQ(get(store, key(tag)), tag == 2 ? "-no_slot" : "v" + std::to_string(tag));
    EXPECT_EQ(store.may_have_lost(key(tag)), tag == 2);
  }
  EXPECT_EQ(store.counts().hits, 8u);
  EXPECT_EQ(store.counts().no_slot, 1u);
}

// A log of 2048 bytes and items of 18 + 6 = 24. From byte 1024 + 24 on, where less than 1024 is left, it begins anew:
// 43 items fill a round (43 * 24 = 1032 > 1024). Item 43 lies at 2048, in the place of item 0, which is gone, as is
// what began below 2048 + 24 - 2048 = 24.
TEST(MicaStore, LogOverwritesItsOldestItems) {
  MicaStore store(64, Bytes(2048), PageSize::kb4);
  const auto key = [](std::uint32_t i) { return key_at(i, 1); };
  for (std::uint32_t i = 0; i < 43; ++i) put(store, key(i), "value0");
  EXPECT_EQ(get(store, key(0)), "value0");
  EXPECT_EQ(store.counts().log_overwrites, 0u);
  put(store, key(43), "value1");
  EXPECT_EQ(get(store, key(0)), "-log_lost");
  EXPECT_EQ(get(store, key(1)), "value0");
  EXPECT_EQ(get(store, key(43)), "value1");
  EXPECT_EQ(store.counts().log_overwrites, 1u);
  EXPECT_EQ(store.counts().log_lost, 1u);
  EXPECT_TRUE(store.may_have_lost(key(0)));
  EXPECT_FALSE(store.may_have_lost(key(1)));
  EXPECT_EQ(store.counts().never_lost, 0u);
  EXPECT_EQ(put(store, key(0), "value2"), MicaEnd::inserted);  // the same length, but nothing to overwrite
  EXPECT_EQ(get(store, key(0)), "value2");
  EXPECT_EQ(get(store, key(1)), "-log_lost");
}

// A slot whose item the log has overwritten is taken before one whose item is there.
TEST(MicaStore, ReusesSlotsOfLostItemsFirst) {
  MicaStore store(1, Bytes(2048), PageSize::kb4);
  put(store, key_at(0, 1), std::string(1000, 'a'));
  for (std::uint16_t tag = 2; tag <= 8; ++tag) put(store, key_at(0, tag), "v");
  put(store, key_at(0, 9), std::string(1000, 'b'));  // the second round: the first item is gone
  EXPECT_EQ(store.counts().index_evictions, 0u);
  EXPECT_EQ(get(store, key_at(0, 9)), std::string(1000, 'b'));
  EXPECT_EQ(get(store, key_at(0, 1)), "-no_slot");
}

// Random PUTs and GETs for many rounds of the log: a hit yields the last value that was put, byte for byte, a miss is
// of a key that the store knows to have lost, and the counts add up.
TEST(MicaStore, NeverReturnsAnotherValue) {
  MicaStore store(16, Bytes(8192), PageSize::kb4);
  std::map<std::uint64_t, std::string> last;
  std::uint64_t never_there = 0;
  for (std::uint64_t i = 0; i < 20'000; ++i) {
    const std::uint64_t which = mix(i) % 200;
    const KeyHash key{mix(which), mix(~which)};
    if (mix(i) >> 63 != 0) {
      last[which] = std::string(mix(~i) % 300, static_cast<char>('a' + i % 26));
      put(store, key, last[which]);
      ASSERT_EQ(get(store, key), last[which]);
    } else {
      const std::string found = get(store, key);
      if (found.empty() || found[0] != '-') {
        ASSERT_EQ(found, last[which]);
      } else if (last.contains(which)) {
        ASSERT_TRUE(store.may_have_lost(key)) << which;
      } else {
        ++never_there;
      }
    }
  }
  const MicaCounts& counts = store.counts();
  EXPECT_EQ(counts.hits + counts.no_slot + counts.other_key + counts.log_lost, 20'000u);  // one GET per turn
  EXPECT_GT(counts.log_lost, 0u);
  EXPECT_GT(counts.index_evictions, 0u);
  EXPECT_GT(never_there, 0u);
  EXPECT_LE(counts.never_lost, never_there);  // a key shares its bit with others
}

TEST(MicaStore, AllVariantsReturnTheSame) {
  MicaStore store(32, Bytes(8192), PageSize::kb4);
  for (std::uint64_t i = 1; i <= 300; ++i) {  // more than fit into the log
    const std::uint64_t value = mix(i);
    store.put(KeyHash{mix(i), i}, std::as_bytes(std::span(&value, 1)));
  }
  std::vector<KeyHash> keys;
  std::vector<MicaGets::Result> expected;
  std::size_t hits = 0;
  for (std::uint64_t i = 0; i < 333; ++i) {
    keys.push_back({mix(i), i});
    std::array<std::byte, MicaStore::kMaxValue> value;
    std::size_t length = 0;
    expected.push_back({store.get(keys.back(), value.data(), length), 0});
    if (expected.back().end != MicaEnd::hit) continue;
    ++hits;
    expected.back().value = mix(i);
  }
  EXPECT_GT(hits, 50u);
  EXPECT_LT(hits, 300u);
  test::expect_all_variants_return(MicaGets(store), keys, expected);
}

TEST(MicaStore, RejectsSizesThatAreNoPowersOfTwo) {
  EXPECT_THROW(MicaStore(3, Bytes(2048), PageSize::kb4), Error);
  EXPECT_THROW(MicaStore(2, Bytes(3000), PageSize::kb4), Error);
  EXPECT_THROW(MicaStore(2, Bytes(1024), PageSize::kb4), Error);
}

}  // namespace
}  // namespace verbscope::lookups
