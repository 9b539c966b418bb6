// Bytes on the wire, added up header by header: InfiniBand Architecture Specification 1.3, volume 1, chapter 9.
#include <gtest/gtest.h>

#include "pcie_model/costs.hpp"

namespace verbscope {
namespace {

using enum Verb;
using enum Transport;

constexpr Bytes kMtu{1024};
constexpr std::uint64_t kEvery = 8 + 12 + 4 + 2;  // LRH, BTH, ICRC, VCRC

std::uint64_t request(Verb verb, Transport transport, std::uint64_t payload, bool immediate = false) {
  return request_bytes(verb, transport, Bytes(payload), immediate, kMtu).value;
}
std::uint64_t response(Verb verb, std::uint64_t payload) {
  return response_bytes(verb, Bytes(payload), kMtu).value;
}

TEST(PacketBytes, SendHasADethOnUdInEachPacketAndAnImmediateOnce) {
  EXPECT_EQ(request(send, ud, 60), kEvery + 8 + 60);
  EXPECT_EQ(request(send, ud, 0, true), kEvery + 8 + 4);
  EXPECT_EQ(request(send, rc, 3000, true), 3 * kEvery + 3000 + 4);
}

TEST(PacketBytes, PayloadIsPaddedToFourBytes) {
  EXPECT_EQ(request(send, rc, 1), kEvery + 4);
  EXPECT_EQ(request(write, uc, 1025), 2 * kEvery + 16 + 1024 + 4);
  EXPECT_EQ(response(read, 5), kEvery + 4 + 8);
}

TEST(PacketBytes, WriteHasARethInItsFirstPacketOnly) {
  EXPECT_EQ(request(write, rc, 0), kEvery + 16);
  EXPECT_EQ(request(write, rc, 1024), kEvery + 16 + 1024);
  EXPECT_EQ(request(write, uc, 4096), 4 * kEvery + 16 + 4096);
  EXPECT_EQ(request(write, rc, 2048, true), 2 * kEvery + 16 + 4 + 2048);
}

TEST(PacketBytes, ReadRequestIsOnePacketForAnyLength) {
  EXPECT_EQ(request(read, rc, 8), kEvery + 16);
  EXPECT_EQ(request(read, rc, 1 << 20), kEvery + 16);
}

TEST(PacketBytes, ReadResponseHasAnAethInFirstAndLastPacketButNotBetween) {
  EXPECT_EQ(response(read, 0), kEvery + 4);
  EXPECT_EQ(response(read, 1024), kEvery + 4 + 1024);
  EXPECT_EQ(response(read, 2048), 2 * (kEvery + 4) + 2048);
  EXPECT_EQ(response(read, 5120), 5 * kEvery + 2 * 4 + 5120);
}

TEST(PacketBytes, AtomicsCarryTheirOwnHeaders) {
  for (const Verb verb : {fetch_add, compare_swap}) {
    EXPECT_EQ(request(verb, rc, 8), kEvery + 28);
    EXPECT_EQ(response(verb, 8), kEvery + 4 + 8);
  }
}

TEST(PacketBytes, SendAndWriteHaveNoResponse) {
  EXPECT_EQ(response(send, 64), 0u);
  EXPECT_EQ(response(write, 64), 0u);
}

}  // namespace
}  // namespace verbscope
