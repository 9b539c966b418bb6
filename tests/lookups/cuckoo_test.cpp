// The cuckoo table against a map, for every variant.
#include "lookups/cuckoo.hpp"

#include <unordered_map>

#include "common/error.hpp"
#include "tests/lookups/variants.hpp"

namespace verbscope::lookups {
namespace {

constexpr std::size_t kBuckets = 64;

Cuckoo small_table() {
  return {Bytes(kBuckets * 64), PageSize::kb4};
}

std::uint32_t key_of(std::size_t i) {
  return static_cast<std::uint32_t>(mix(i)) | 1;
}

TEST(Cuckoo, MatchesAMap) {
  Cuckoo table = small_table();
  std::unordered_map<std::uint32_t, std::uint32_t> map;
  for (std::size_t i = 0; i < 4 * kBuckets; ++i) {
    ASSERT_NE(table.insert(key_of(i), static_cast<std::uint32_t>(i)), Cuckoo::Inserted::full);
    map[key_of(i)] = static_cast<std::uint32_t>(i);
  }
  std::vector<std::uint32_t> keys;
  std::vector<Cuckoo::Result> expected;
  for (std::size_t i = 0; i < 6 * kBuckets + 5; ++i) {  // a third of the keys is absent
    keys.push_back(key_of(i * 7 % (6 * kBuckets)));
    const auto there = map.find(keys.back());
    expected.push_back(there == map.end() ? Cuckoo::Result{} : Cuckoo::Result{true, there->second});
  }
  test::expect_all_variants_return(table, keys, expected);
}

TEST(Cuckoo, FindsNothingInAnEmptyTable) {
  const std::vector<std::uint32_t> keys{1, 2, 3, 4, 5};
  test::expect_all_variants_return(small_table(), keys, std::vector<Cuckoo::Result>(5));
}

TEST(Cuckoo, AcceptsNoKeys) {
  test::expect_all_variants_return(small_table(), std::vector<std::uint32_t>(), {});
}

TEST(Cuckoo, OverwritesInPlace) {
  Cuckoo table = small_table();
  HostNode node;
  EXPECT_EQ(table.insert(5, 50), Cuckoo::Inserted::added);
  EXPECT_EQ(table.insert(5, 51), Cuckoo::Inserted::overwritten);
  EXPECT_EQ(table.find(node, 5), (Cuckoo::Result{true, 51}));
}

TEST(Cuckoo, RejectsKeyZero) {
  Cuckoo table = small_table();
  EXPECT_EQ(table.insert(0, 1), Cuckoo::Inserted::refused);
  test::expect_all_variants_return(table, std::vector<std::uint32_t>{0, 0}, std::vector<Cuckoo::Result>(2));
}

// Two buckets hold 16 keys. The seventeenth has no room, and the others stay.
TEST(Cuckoo, KeepsAllKeysWhenItIsFull) {
  Cuckoo table(Bytes(128), PageSize::kb4);
  HostNode node;
  for (std::uint32_t key = 1; key <= 16; ++key) EXPECT_EQ(table.insert(key, 10 * key), Cuckoo::Inserted::added);
  EXPECT_EQ(table.insert(17, 170), Cuckoo::Inserted::full);
  for (std::uint32_t key = 1; key <= 16; ++key) EXPECT_EQ(table.find(node, key), (Cuckoo::Result{true, 10 * key}));
  EXPECT_FALSE(table.find(node, 17).found);
}

// At 90 % full, keys were moved between their buckets. None is lost.
TEST(Cuckoo, MovesKeysToMakeRoom) {
  Cuckoo table = small_table();
  HostNode node;
  const std::size_t count = 8 * kBuckets * 9 / 10;
  for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(table.insert(key_of(i), 3), Cuckoo::Inserted::added) << i;
  for (std::size_t i = 0; i < count; ++i) EXPECT_TRUE(table.find(node, key_of(i)).found) << i;
}

TEST(Cuckoo, RejectsSizesThatAreNoPowerOfTwo) {
  EXPECT_THROW(Cuckoo(Bytes(192), PageSize::kb4), Error);
  EXPECT_THROW(Cuckoo(Bytes(64), PageSize::kb4), Error);
}

}  // namespace
}  // namespace verbscope::lookups
