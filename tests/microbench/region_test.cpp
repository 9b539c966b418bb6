// Slices of a region, and the sequence of remote addresses in it.
#include "microbench/bench/region.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <vector>

namespace verbscope {
namespace {

using testing::ElementsAre;

std::vector<std::uint64_t> next_addresses(RemoteWalk& walk, std::uint32_t count) {
  std::vector<ibv_send_wr> requests(count);
  walk.point(requests.data(), count);
  std::vector<std::uint64_t> addresses;
  for (const ibv_send_wr& wr : requests) addresses.push_back(wr.wr.rdma.remote_addr);
  return addresses;
}

TEST(SliceOf, IsAnEqualAlignedShare) {
  EXPECT_EQ(slice_of(1000, 3, 0).bytes, 320u);  // 333 bytes, in whole lines
  EXPECT_EQ(slice_of(1000, 3, 2).offset, 640u);
  EXPECT_EQ(slice_of(100, 2, 1).bytes, 0u);  // too little for a line each
}

TEST(RemoteWalk, VisitsPlacesInTurnAndWraps) {
  RemoteWalk walk({.address = 4096, .bytes = 4 * 128 + 100}, 128, Addresses::sequential, 2);
  EXPECT_EQ(walk.places(), 4u);
  EXPECT_THAT(next_addresses(walk, 3), ElementsAre(4096 + 256, 4096 + 384, 4096));
  EXPECT_THAT(next_addresses(walk, 2), ElementsAre(4096 + 128, 4096 + 256));  // goes on where it was
}

TEST(RemoteWalk, RandomPlacesAreInTheRegionAndEquallyFrequent) {
  constexpr std::uint64_t kPlaces = 10;
  RemoteWalk walk({.address = 1 << 20, .bytes = kPlaces * 256}, 256, Addresses::random, 1);
  std::map<std::uint64_t, int> taken;
  for (const std::uint64_t address : next_addresses(walk, 10000)) {
    ASSERT_GE(address, 1u << 20);
    ASSERT_LT(address, (1u << 20) + kPlaces * 256);
    ASSERT_EQ(address % 256, 0u);
    ++taken[address];
  }
  ASSERT_EQ(taken.size(), kPlaces);
  // 1000 expected of each; the standard deviation of a fair choice is 30.
  for (const auto& [address, count] : taken) EXPECT_NEAR(count, 1000, 150) << address;
}

TEST(RemoteWalk, SeedsGiveDifferentWalks) {
  RemoteWalk a({.bytes = 1 << 20}, 64, Addresses::random, 1), b({.bytes = 1 << 20}, 64, Addresses::random, 2);
  EXPECT_NE(next_addresses(a, 8), next_addresses(b, 8));
}

}  // namespace
}  // namespace verbscope
