// The axes of a figure.
#include "analysis/axis.hpp"

#include <gmock/gmock.h>

namespace verbscope {
namespace {

using testing::ElementsAre;

TEST(Axis, PowersAreGeometricEvenStepsAreNot) {
  EXPECT_TRUE(is_geometric({16, 32, 64, 128, 256}));
  EXPECT_TRUE(is_geometric({1, 2, 4, 8, 14}));
  EXPECT_FALSE(is_geometric({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14}));
  EXPECT_FALSE(is_geometric({0, 1, 2, 4, 8, 16}));
  EXPECT_FALSE(is_geometric({16, 32}));
}

TEST(Axis, OptionAxisHasATickPerValueAndStartsAtZeroOrAbove) {
  const Axis linear = option_axis({1, 2, 40}, false);
  EXPECT_THAT(linear.ticks, ElementsAre(1, 2, 40));
  EXPECT_EQ(linear.low, 0);
  EXPECT_GT(linear.high, 40);
  const Axis logarithmic = option_axis({16, 256}, true);
  EXPECT_GT(logarithmic.low, 8);
  EXPECT_LT(logarithmic.high, 512);
}

TEST(Axis, OneValueGivesAValidAxis) {
  for (const double value : {0.0, 8.0}) {
    const Axis axis = option_axis({value}, false);
    EXPECT_GE(axis.low, 0);
    EXPECT_GT(axis.high, axis.low);
  }
  EXPECT_GT(option_axis({8}, true).high, 8);
}

TEST(Axis, ResultAxisStartsAtZeroAndEndsAtARoundNumber) {
  EXPECT_THAT(result_axis(22, 122, false, 4).ticks, ElementsAre(0, 50, 100, 150));
  EXPECT_THAT(result_axis(0, 0, false, 3).ticks, ElementsAre(0, 0.5, 1));
  EXPECT_LE(result_axis(-0.5, 3, false, 5).low, -0.5);
  const Axis decades = result_axis(3, 700, true, 8);
  EXPECT_EQ(decades.low, 2);
  EXPECT_EQ(decades.high, 1000);
  EXPECT_THAT(decades.ticks, testing::IsSupersetOf({10.0, 100.0}));
}

TEST(Axis, BytesUseUnitLetters) {
  EXPECT_EQ(tick_text(65536, true), "64k");
  EXPECT_EQ(tick_text(1500, true), "1500");
  EXPECT_EQ(tick_text(65536, false), "65536");
  EXPECT_EQ(tick_text(0.25, false), "0.25");
}

// Nine labels of four or five letters do not fit into 20 letters; the first and the last remain.
TEST(Axis, TicksWithoutRoomAreDropped) {
  const Axis axis = option_axis({1000, 2000, 3000, 4000, 5000, 6000, 7000, 8000, 9000}, false);
  const std::vector<double> kept = ticks_with_room(axis, false, 20);
  EXPECT_LE(kept.size(), 4u);
  EXPECT_EQ(kept.front(), 1000);
  EXPECT_EQ(kept.back(), 9000);
  EXPECT_EQ(ticks_with_room(axis, false, 200).size(), 9u);
}

TEST(AxisTitle, TitlesHaveUnits) {
  EXPECT_EQ(axis_title("size"), "payload (bytes)");
  EXPECT_EQ(axis_title("rate_mops"), "rate (Mops)");
  EXPECT_EQ(axis_title("get_lat_p50_ns"), "get lat p50 (ns)");
  EXPECT_EQ(axis_title("duration_s"), "duration (s)");
  EXPECT_EQ(axis_title("lock_retries"), "lock retries");
}

}  // namespace
}  // namespace verbscope
