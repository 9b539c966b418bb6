// The tables that clients READ without the server's CPU: where things lie, that every key is found, and that what was
// READ while it was written is not taken for a value.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include "systems/one_sided/access.hpp"
#include "systems/one_sided/farm_table.hpp"
#include "systems/one_sided/pilaf_table.hpp"
#include "tests/microbench/scripted_device.hpp"

namespace verbscope {
namespace {

using lookups::KeyHash;
using test::ScriptedNode;
using Kind = GetStep::Kind;

KeyHash hash_of(std::uint64_t key) {
  return {mix(key), mix(mix(key))};
}

// Value `version` of a key: each byte says which.
void fill_value(std::uint64_t key, std::uint8_t version, std::byte* value, std::uint32_t bytes) {
  for (std::uint32_t i = 0; i < bytes; ++i) value[i] = std::byte(key * 31 + i * 7 + version);
}

// A table of `keys` keys with version 0 of their values.
template <class Table>
struct Filled {
  Table table;
  std::uint64_t keys;
  std::vector<std::uint64_t> words;  // the region
  ScriptedNode node;

  Filled(Table made, std::uint64_t count) : table(made), keys(count), words(table.region_bytes() / 8 + 1) {
    table.fill({region(), table.region_bytes()}, {hash_of, [this](std::uint64_t key, std::byte* value) {
                                                    fill_value(key, 0, value, table.value_bytes());
                                                  }});
  }
  std::byte* region() { return reinterpret_cast<std::byte*>(words.data()); }
  std::vector<std::byte> value(std::uint64_t key, std::uint8_t version) const {
    std::vector<std::byte> bytes(table.value_bytes());
    fill_value(key, version, bytes.data(), table.value_bytes());
    return bytes;
  }
  std::vector<std::byte> read(const RegionPiece& piece) {
    return {region() + piece.offset, region() + piece.offset + piece.bytes};
  }
  bool put(typename Table::Puts& puts, std::uint64_t key, std::uint8_t version) {
    return puts.put(node, hash_of(key), value(key, version).data());
  }

  // A whole GET, each READ at once. Returns the value; empty: there is no such key.
  std::vector<std::byte> get(std::uint64_t key, GetCounts& counts) {
    typename Table::Get get;
    RegionPiece piece = get.begin(table, hash_of(key));
    for (;;) {
      std::vector<std::byte> got = read(piece);
      const GetStep step = get.take(table, got.data(), piece, counts);
      if (step.kind == Kind::missing) return {};
      if (step.kind == Kind::found) return {step.value, step.value + table.value_bytes()};
    }
  }
};

TEST(PilafTable, HasThreeQuartersOfItsBucketsUsedAndSpareItems) {
  // 100 buckets of 32 bytes for 75 keys; items of 40 bytes, 64 of them spare for each of two threads; 1024 locks.
  const PilafTable table(75, 37, 2);
  EXPECT_EQ(table.item_at(0), 3200u);
  EXPECT_EQ(table.item_at(1), 3240u);
  EXPECT_EQ(table.spare(1, 63), 75u + 127u);
  EXPECT_EQ(table.region_bytes(), 3200u + (75 + 128) * 40 + 4096);
  for (std::uint64_t key = 0; key < 1000; ++key) {
    for (std::uint32_t which = 0; which < 3; ++which) {
      EXPECT_LT(table.bucket_at(hash_of(key), which), 3200u);
      EXPECT_EQ(table.bucket_at(hash_of(key), which) % 32, 0u);
    }
  }
}

TEST(PilafTable, FindsEveryKeyAndNoOther) {
  for (const std::uint64_t keys : {1, 3, 75, 20000}) {
    Filled<PilafTable> filled(PilafTable(keys, 32, 1), keys);
    GetCounts counts;
    for (std::uint64_t key = 0; key < keys; ++key) ASSERT_EQ(filled.get(key, counts), filled.value(key, 0)) << key;
    EXPECT_EQ(counts.values.sum(), keys);
    EXPECT_LE(counts.probes.sum(), 3 * keys);
    EXPECT_EQ(counts.torn + counts.moved, 0u);
    EXPECT_THAT(filled.get(keys, counts), testing::IsEmpty());
  }
}

TEST(PilafTable, DetectsEveryTornBucket) {
  Filled<PilafTable> filled(PilafTable(10, 32, 1), 10);
  PilafPuts puts(filled.table, filled.region(), 0);
  for (std::uint64_t key = 0; key < 10; ++key) {
    PilafGet get;
    RegionPiece piece = get.begin(filled.table, hash_of(key));
    std::vector<std::byte> before = filled.read(piece);
    PilafBucket bucket;
    std::memcpy(&bucket, before.data(), sizeof bucket);
    if (bucket.tag != hash_of(key).high) continue;  // it lies in another bucket
    ASSERT_TRUE(filled.put(puts, key, 1));
    const std::vector<std::byte> after = filled.read(piece);
    ASSERT_NE(before, after);
    for (std::size_t cut = 1; cut < 32; ++cut) {
      std::vector<std::byte> torn = before;
      std::copy_n(after.begin(), cut, torn.begin());
      if (torn == before || torn == after) continue;
      GetCounts counts;
      RegionPiece next = get.begin(filled.table, hash_of(key));
      EXPECT_EQ(get.take(filled.table, torn.data(), next, counts).kind, Kind::read_on) << cut;
      EXPECT_EQ(counts.torn, 1u) << cut;
      EXPECT_EQ(next.offset, piece.offset) << cut;
    }
  }
}

TEST(PilafTable, DetectsAnItemWhosePlaceWasReused) {
  Filled<PilafTable> filled(PilafTable(10, 100, 1), 10);
  PilafPuts puts(filled.table, filled.region(), 0);
  GetCounts counts;
  PilafGet get;
  RegionPiece piece = get.begin(filled.table, hash_of(4));
  const RegionPiece bucket = piece;
  std::vector<std::byte> got = filled.read(piece);
  while (piece.bytes == 32) {
    got = filled.read(piece);
    ASSERT_EQ(get.take(filled.table, got.data(), piece, counts).kind, Kind::read_on);
  }
  // The place of key 4's item is used again by the 65th PUT after its own: 64 spare items came before it.
  ASSERT_TRUE(filled.put(puts, 4, 1));
  for (std::uint8_t i = 0; i < 63; ++i) ASSERT_TRUE(filled.put(puts, 5, i));
  got = filled.read(piece);
  EXPECT_TRUE(std::ranges::equal(got, filled.value(4, 0)));
  ASSERT_TRUE(filled.put(puts, 5, 200));
  got = filled.read(piece);
  EXPECT_EQ(get.take(filled.table, got.data(), piece, counts).kind, Kind::read_on);
  EXPECT_EQ(counts.moved, 1u);
  EXPECT_EQ(piece.bytes, bucket.bytes);
  EXPECT_EQ(filled.get(4, counts), filled.value(4, 1));
}

TEST(PilafTable, NeverLosesAnItemHoweverManyPuts) {
  Filled<PilafTable> filled(PilafTable(20, 32, 2), 20);
  PilafPuts one(filled.table, filled.region(), 0), other(filled.table, filled.region(), 1);
  std::map<std::uint64_t, std::uint8_t> versions;
  for (std::uint32_t i = 0; i < 5000; ++i) {
    const std::uint64_t key = mix(i) % 20;
    versions[key] = static_cast<std::uint8_t>(i);
    ASSERT_TRUE(filled.put(i % 3 == 0 ? one : other, key, versions[key]));
  }
  GetCounts counts;
  for (const auto& [key, version] : versions) EXPECT_EQ(filled.get(key, counts), filled.value(key, version)) << key;
  EXPECT_FALSE(filled.put(one, 20, 0));
}

TEST(FarmTable, HasSlotsOfWholeLinesOrOfKeyAndPointer) {
  // Key and value of 48 bytes fit the 56 of one line, those of 116 need three; 2 * 10 homes and 5 slots behind the
  // last.
  EXPECT_EQ(FarmTable(10, 32, false).slot_bytes(), 64u);
  EXPECT_EQ(FarmTable(10, 100, false).slot_bytes(), 192u);
  EXPECT_EQ(FarmTable(10, 32, false).region_bytes(), 25u * 64);
  EXPECT_EQ(FarmTable(10, 40, false).slot_bytes(), 64u);
  EXPECT_EQ(FarmTable(10, 41, false).slot_bytes(), 128u);
  const FarmTable apart(10, 57, true);
  EXPECT_EQ(apart.slot_bytes(), 24u);
  EXPECT_EQ(apart.object_at(0), 640u);
  EXPECT_EQ(apart.object_bytes(), 128u);
  EXPECT_EQ(apart.region_bytes(), 640u + 10 * 128);
  EXPECT_EQ(apart.neighbourhood(hash_of(1), 0).bytes, 144u);
}

TEST(FarmTable, FindsEveryKeyAndNoOther) {
  for (const bool apart : {false, true}) {
    for (const std::uint64_t keys : {1, 10, 20000}) {
      Filled<FarmTable> filled(FarmTable(keys, 100, apart), keys);
      GetCounts counts;
      for (std::uint64_t key = 0; key < keys; ++key) ASSERT_EQ(filled.get(key, counts), filled.value(key, 0)) << key;
      EXPECT_EQ(counts.values.sum(), apart ? keys : 0);
      // Very few keys lie in the neighbourhood of their second home.
      EXPECT_LE(counts.probes.sum(), keys + keys / 100);
      EXPECT_THAT(filled.get(keys, counts), testing::IsEmpty());
    }
  }
}

TEST(FarmTable, PutsReplaceValues) {
  for (const bool apart : {false, true}) {
    Filled<FarmTable> filled(FarmTable(50, 100, apart), 50);
    FarmPuts puts(filled.table, filled.region());
    for (std::uint64_t key = 0; key < 50; ++key) ASSERT_TRUE(filled.put(puts, key, 3));
    GetCounts counts;
    for (std::uint64_t key = 0; key < 50; ++key) EXPECT_EQ(filled.get(key, counts), filled.value(key, 3)) << key;
    EXPECT_EQ(counts.torn, 0u);
    EXPECT_FALSE(filled.put(puts, 50, 0));
  }
}

// A READ sees each line as a whole, but the lines at different moments.
TEST(Lines, AcceptsOnlyLinesOfOneWrite) {
  constexpr std::uint64_t kBytes = 3 * kLineBytes - 20;
  std::vector<std::uint64_t> words(3 * kCacheLine.value / 8);
  auto* const lines = reinterpret_cast<std::byte*>(words.data());
  std::vector<std::byte> older(kBytes, std::byte{1}), newer(kBytes, std::byte{2}), got(kBytes);
  lay_object(lines, kBytes, older.data());
  // What lies in memory before the write, at each moment between two lines, and after it.
  std::vector<std::vector<std::uint64_t>> moments{words};
  ScriptedNode node;
  node.on_poll_memory = [&] { moments.push_back(words); };
  write_object(node, lines, 0, newer.data(), kBytes);
  moments.push_back(words);
  ASSERT_EQ(moments.size(), 4u);
  for (std::size_t first = 0; first < 4; ++first) {
    for (std::size_t second = 0; second < 4; ++second) {
      for (std::size_t third = 0; third < 4; ++third) {
        std::vector<std::uint64_t> seen(words.size());
        std::copy_n(moments[first].begin(), 8, seen.begin());
        std::copy_n(moments[second].begin() + 8, 8, seen.begin() + 8);
        std::copy_n(moments[third].begin() + 16, 8, seen.begin() + 16);
        const auto version = read_object(reinterpret_cast<std::byte*>(seen.data()), kBytes, got.data());
        if (!version) continue;
        EXPECT_EQ(got, *version == 0 ? older : newer) << first << second << third;
      }
    }
  }
  EXPECT_EQ(read_object(lines, kBytes, got.data()), 2u);
  EXPECT_EQ(got, newer);
  const auto at_the_lock = read_object(reinterpret_cast<std::byte*>(moments[1].data()), kBytes, got.data());
  EXPECT_FALSE(at_the_lock.has_value());
}

TEST(Lines, AnObjectComesOutOfItsLinesInPlace) {
  std::vector<std::uint64_t> words(2 * kCacheLine.value / 8);
  auto* const lines = reinterpret_cast<std::byte*>(words.data());
  std::vector<std::byte> object(100);
  for (std::size_t i = 0; i < object.size(); ++i) object[i] = std::byte(i);
  lay_object(lines, object.size(), object.data());
  ASSERT_TRUE(read_object(lines, object.size(), lines));
  EXPECT_TRUE(std::equal(object.begin(), object.end(), lines));
}

TEST(Lines, WritesAllButTheUnchangedBytes) {
  std::vector<std::uint64_t> words(2 * kCacheLine.value / 8);
  auto* const lines = reinterpret_cast<std::byte*>(words.data());
  std::vector<std::byte> object(90, std::byte{1}), got(90);
  lay_object(lines, object.size(), object.data());
  ScriptedNode node;
  const std::vector<std::byte> rest(74, std::byte{2});
  write_object(node, lines, 16, rest.data(), rest.size());
  ASSERT_TRUE(read_object(lines, got.size(), got.data()));
  std::fill(object.begin() + 16, object.end(), std::byte{2});
  EXPECT_EQ(got, object);
}

// One READ after the other, of the sizes that Kalia et al., SIGCOMM 2014, sections 5.1.1 and 5.1.2 say.
std::vector<std::uint32_t> reads_of(const EmulatedAccess& access, EmulatedGet& get, std::uint64_t key) {
  GetCounts counts;
  std::vector<std::uint32_t> sizes;
  RegionPiece piece = get.begin(access, hash_of(key));
  for (GetStep step; step.kind == Kind::read_on; step = get.take(access, nullptr, piece, counts)) {
    sizes.push_back(piece.bytes);
    EXPECT_LE(piece.offset + piece.bytes, access.region_bytes());
  }
  return sizes;
}

TEST(Emulated, PilafReadsOneToThreeBucketsThenTheValue) {
  const EmulatedAccess access = EmulatedAccess::pilaf(1000, 48);
  EmulatedGet get;
  std::map<std::size_t, double> shares;
  constexpr std::uint64_t kGets = 200000;
  for (std::uint64_t key = 0; key < kGets; ++key) {
    const std::vector<std::uint32_t> sizes = reads_of(access, get, key);
    EXPECT_EQ(sizes.back(), 48u);
    EXPECT_EQ(std::ranges::count(sizes, 32u), std::ssize(sizes) - 1);
    shares[sizes.size() - 1] += 1.0 / kGets;
  }
  // Three standard deviations of a share of 200000 are 0.0033 at most.
  EXPECT_NEAR(shares[1], 0.55, 0.0035);
  EXPECT_NEAR(shares[2], 0.30, 0.0035);
  EXPECT_NEAR(shares[3], 0.15, 0.0035);
  EXPECT_EQ(shares.size(), 3u);
  EXPECT_DOUBLE_EQ(access.mean_probes(), 1.6);
}

TEST(Emulated, FarmReadsANeighbourhoodOfSixItemsOrSixPointersThenTheValue) {
  EmulatedGet get;
  for (std::uint64_t key = 0; key < 1000; ++key) {
    EXPECT_THAT(reads_of(EmulatedAccess::farm(1000, 32), get, key), testing::ElementsAre(288u));
    EXPECT_THAT(reads_of(EmulatedAccess::farm_var(1000, 32), get, key), testing::ElementsAre(144u, 32u));
  }
}

}  // namespace
}  // namespace verbscope
