// The places of kv_atomic's records and locks, and what its values say about themselves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "systems/kv_atomic/layout.hpp"

namespace verbscope {
namespace {

using enum LockPlacement;

constexpr std::uint32_t kConnectIb = 12;  // bits of the address, ATC 2016, section 5.4

TEST(KvLayout, RecordsBeginOnPagesAndLocksLieApartFromValues) {
  for (const LockPlacement placement : {same, hashed, apart}) {
    for (const std::uint64_t value : {16, 32, 4088, 4096, 5000}) {
      const KvLayout layout(50, value, placement);
      std::set<std::uint64_t> locks;
      for (std::uint64_t key = 0; key < 50; ++key) {
        EXPECT_EQ(layout.value_of(key) % 4096, 0u);
        const std::uint64_t lock = layout.lock_of(key);
        EXPECT_EQ(lock % 8, 0u);
        EXPECT_LE(lock + 8, layout.region_bytes());
        for (std::uint64_t other = 0; other < 50; ++other) {
          EXPECT_TRUE(lock + 8 <= layout.value_of(other) || lock >= layout.value_of(other) + value);
        }
        locks.insert(lock);
      }
      EXPECT_EQ(locks.size(), 50u);
    }
  }
}

TEST(KvLayout, ALockOfARecordLiesInIt) {
  for (const LockPlacement placement : {same, hashed}) {
    const KvLayout layout(1000, 32, placement);
    for (std::uint64_t key = 0; key < 1000; ++key) {
      EXPECT_EQ(layout.lock_of(key) / 4096, layout.value_of(key) / 4096);
    }
  }
}

TEST(LockSlots, LocksAtOneOffsetOfAPageShareOneSlot) {
  EXPECT_EQ(distinct_lock_slots(KvLayout(4096, 32, same), 0x7f00'0000'0000, kConnectIb), 1u);
}

// 4096 locks side by side fill 8 pages; 100 take 100 words.
TEST(LockSlots, ATableOfLocksUsesEveryWordOfAPage) {
  EXPECT_EQ(distinct_lock_slots(KvLayout(4096, 32, apart), 0x7f00'0000'0000, kConnectIb), 512u);
  EXPECT_EQ(distinct_lock_slots(KvLayout(100, 32, apart), 0x7f00'0000'0000, kConnectIb), 100u);
}

// 508 words behind a value of 32 bytes. Of 508 places, 4096 random choices leave each out with probability
// (1 - 1/508)^4096 = 0.0003.
TEST(LockSlots, HashedLocksUseNearlyAllWordsBehindTheValue) {
  const std::uint64_t slots = distinct_lock_slots(KvLayout(4096, 32, hashed), 0x7f00'0000'0000, kConnectIb);
  EXPECT_GE(slots, 505u);
  EXPECT_LE(slots, 508u);
}

TEST(LockSlots, ZeroAddressBitsGiveOneSlot) {
  EXPECT_EQ(distinct_lock_slots(KvLayout(4096, 32, apart), 0x7f00'0000'0000, 0), 1u);
}

TEST(KvLock, CountsTicketsAndThoseServed) {
  std::uint64_t lock = 0;
  for (int i = 0; i < 3; ++i) lock += kTakeTicket;
  lock += kServeNext;
  EXPECT_EQ(next_ticket(lock), 3u);
  EXPECT_EQ(now_served(lock), 1u);
}

struct Value {
  std::vector<std::byte> bytes = std::vector<std::byte>(64);
  KvValues values{7, 64};

  KvFinding as(std::uint64_t key) const { return values.look_at(bytes.data(), key).finding; }
};

TEST(KvValues, HoldTheirVersion) {
  Value value;
  for (const std::uint64_t version : {0ull, 1ull, 12345ull, kMaxKvVersions - 1ull}) {
    value.values.fill(value.bytes.data(), 3, version);
    const KvReading reading = value.values.look_at(value.bytes.data(), 3);
    EXPECT_EQ(reading.finding, KvFinding::consistent);
    EXPECT_EQ(reading.version, version);
  }
}

TEST(KvValues, OfTwoVersionsAreTorn) {
  Value value, newer;
  value.values.fill(value.bytes.data(), 3, 8);
  newer.values.fill(newer.bytes.data(), 3, 9);
  for (std::ptrdiff_t cut = 8; cut < 64; cut += 8) {
    Value torn = value;
    std::copy_n(newer.bytes.begin(), cut, torn.bytes.begin());
    EXPECT_EQ(torn.as(3), KvFinding::torn) << cut;
  }
}

TEST(KvValues, OfAnotherKeySeedOrPlaceAreWrong) {
  Value value;
  EXPECT_EQ(value.as(3), KvFinding::wrong);  // zeroes
  value.values.fill(value.bytes.data(), 3, 1);
  EXPECT_EQ(value.as(4), KvFinding::wrong);
  EXPECT_EQ(KvValues(8, 64).look_at(value.bytes.data(), 3).finding, KvFinding::wrong);
  std::rotate(value.bytes.begin(), value.bytes.begin() + 8, value.bytes.end());
  EXPECT_EQ(value.as(3), KvFinding::wrong);
}

TEST(KvValues, AreWrongWithOneByteChanged) {
  Value value;
  value.values.fill(value.bytes.data(), 3, 1);
  value.bytes[47] ^= std::byte{0x80};  // the highest of a word
  EXPECT_EQ(value.as(3), KvFinding::wrong);
}

}  // namespace
}  // namespace verbscope
