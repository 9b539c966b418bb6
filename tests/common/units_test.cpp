#include "common/units.hpp"

#include <gtest/gtest.h>

#include <type_traits>

namespace verbscope {
namespace {

static_assert(!std::is_convertible_v<Bytes, Ops> && !std::is_convertible_v<int, Bytes>, "units do not mix");

TEST(Units, RoundUpReachesTheNextMultiple) {
  EXPECT_EQ(round_up(0, 64), 0u);
  EXPECT_EQ(round_up(1, 64), 64u);
  EXPECT_EQ(round_up(64, 64), 64u);
  EXPECT_EQ(round_up(65, 64), 128u);
  EXPECT_EQ(divide_up(65, 64), 2u);
}

TEST(Units, QuantitiesAddAndScaleAndCompare) {
  EXPECT_EQ(Bytes(60) + Bytes(4), Bytes(64));
  EXPECT_EQ(Bytes(64) - Bytes(4), Bytes(60));
  EXPECT_EQ(Bytes(16) * 4, Bytes(64));
  EXPECT_LT(Ops(1), Ops(2));
}

TEST(Units, TransferTimeRoundsToTheNearestPicosecond) {
  EXPECT_EQ(TransferTime(BytesPerSecond{6.4e9})(Bytes(64)), Picos(10'000));  // 64 B at 6.4 GB/s: 10 ns
  EXPECT_EQ(TransferTime(BytesPerSecond{3e12})(Bytes(1)), Picos(0));         // 0.33 ps
  EXPECT_EQ(TransferTime(BytesPerSecond{3e12})(Bytes(2)), Picos(1));         // 0.67 ps
}

TEST(Units, RatesAreDecimal) {
  EXPECT_DOUBLE_EQ(to_mops(Ops(1000), Picos(10'000'000)), 100.0);  // 1000 in 10 us
}

}  // namespace
}  // namespace verbscope
