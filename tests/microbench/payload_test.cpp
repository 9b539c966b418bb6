// Validation accepts a good message and refuses any wrong one.
#include "microbench/loop/payload.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>

namespace verbscope {
namespace {

ibv_wc completion(std::uint32_t length) {
  ibv_wc wc{};
  wc.status = IBV_WC_SUCCESS;
  wc.byte_len = length;
  return wc;
}

std::vector<std::byte> message(std::uint64_t seed, std::uint32_t slot, std::size_t size) {
  std::vector<std::byte> bytes(size);
  fill_payload(seed, slot, bytes);
  return bytes;
}

TEST(Payload, DependsOnSeedSlotAndOffset) {
  EXPECT_NE(message(1, 3, 64), message(2, 3, 64));
  EXPECT_NE(message(1, 3, 64), message(1, 4, 64));
  EXPECT_EQ(message(1, 3, 64), message(1, 3, 64));
  EXPECT_EQ(message(1, 3, 64)[0], std::byte{3});
}

TEST(PayloadChecker, AcceptsThePayloadsOfASender) {
  PayloadChecker checker({.transport = Transport::rc, .payload = 100, .seed = 5});
  for (std::uint32_t slot = 0; slot < payload_slots(100); ++slot) {
    auto bytes = message(5, slot, 100);
    EXPECT_TRUE(checker.good(completion(100), bytes.data()));
  }
}

TEST(PayloadChecker, DetectsEveryFlippedByte) {
  PayloadChecker checker({.transport = Transport::rc, .payload = 100, .seed = 5});
  for (std::size_t offset = 0; offset < 100; ++offset) {
    auto bytes = message(5, 2, 100);
    bytes[offset] ^= std::byte{0x10};
    EXPECT_FALSE(checker.good(completion(100), bytes.data())) << offset;
  }
}

TEST(PayloadChecker, DetectsAWrongSeedLengthOrImmediate) {
  PayloadChecker checker({.transport = Transport::rc, .payload = 16, .seed = 5});
  auto other = message(6, 2, 16);
  EXPECT_FALSE(checker.good(completion(16), other.data()));
  auto bytes = message(5, 2, 16);
  EXPECT_FALSE(checker.good(completion(15), bytes.data()));
  ibv_wc with_immediate = completion(16);
  with_immediate.wc_flags = IBV_WC_WITH_IMM;
  EXPECT_FALSE(checker.good(with_immediate, bytes.data()));
}

TEST(PayloadChecker, DetectsAnOldMessage) {
  PayloadChecker checker({.transport = Transport::rc, .payload = 16, .seed = 5});
  auto bytes = message(5, 2, 16);
  EXPECT_TRUE(checker.good(completion(16), bytes.data()));
  EXPECT_FALSE(checker.good(completion(16), bytes.data()));  // nothing was written in between
}

TEST(PayloadChecker, CountsTheGrhOnDatagrams) {
  PayloadChecker checker({.transport = Transport::ud, .payload = 16, .seed = 5});
  auto bytes = message(5, 2, 16);
  EXPECT_TRUE(checker.good(completion(56), bytes.data()));
}

TEST(PayloadChecker, ChecksHeaderOnlyByItsImmediate) {
  PayloadChecker checker({.transport = Transport::ud, .header_only = true});
  ibv_wc wc = completion(40);
  EXPECT_FALSE(checker.good(wc, nullptr));
  wc.wc_flags = IBV_WC_WITH_IMM;
  wc.imm_data = immediate_of(7);
  EXPECT_TRUE(checker.good(wc, nullptr));
  wc.imm_data = htonl(7);
  EXPECT_FALSE(checker.good(wc, nullptr));
}

TEST(PayloadSlots, FitThePoolAndAreAtMostSixteen) {
  EXPECT_EQ(payload_slots(0), 16u);
  EXPECT_EQ(payload_slots(65536), 16u);
  EXPECT_EQ(payload_slots(1u << 18), 4u);
  EXPECT_EQ(payload_slots(1u << 30), 1u);
  EXPECT_EQ(payload_stride(129), 256u);
}

TEST(PayloadChecker, ChecksAPlaceWithManyWritersLineByLine) {
  const Operation op{.payload = 100, .seed = 5};
  const PayloadChecker checker(op);
  std::vector<std::byte> place(128);
  EXPECT_EQ(checker.lines(place), PayloadChecker::Lines::untouched);
  fill_payload(op.seed, 3, std::span(place).first(100));
  EXPECT_EQ(checker.lines(place), PayloadChecker::Lines::good);
  std::vector<std::byte> other(100);
  fill_payload(op.seed, 7, other);
  std::copy(other.begin() + 64, other.end(), place.begin() + 64);  // the second line is another WRITE's
  EXPECT_EQ(checker.lines(place), PayloadChecker::Lines::good);
  place[70] ^= std::byte{1};
  EXPECT_EQ(checker.lines(place), PayloadChecker::Lines::wrong);
  place[70] ^= std::byte{1};
  place[100] = std::byte{1};  // behind the payload
  EXPECT_EQ(checker.lines(place), PayloadChecker::Lines::wrong);
}

}  // namespace
}  // namespace verbscope
