// SplitMix64 against the numbers of its authors' reference implementation (prng.di.unimi.it/splitmix64.c).
#include "common/hash.hpp"

#include <gtest/gtest.h>

#include <bit>

namespace verbscope {
namespace {

TEST(Mix, MatchesTheReferenceStream) {
  const std::uint64_t seed = 1234567;
  EXPECT_EQ(mix(seed), 6457827717110365317u);
  EXPECT_EQ(mix(seed + kMixStep), 3203168211198807973u);
  EXPECT_EQ(mix(seed + 2 * kMixStep), 9817491932198370423u);
  EXPECT_EQ(mix(0), 0xe220a8397b1dcdafu);
}

TEST(Mix, EachInputBitChangesHalfOfTheOutputBits) {
  for (int bit = 0; bit < 64; ++bit) {
    const int changed = std::popcount(mix(42) ^ mix(42 ^ std::uint64_t{1} << bit));
    EXPECT_GT(changed, 12) << bit;
    EXPECT_LT(changed, 52) << bit;
  }
}

}  // namespace
}  // namespace verbscope
