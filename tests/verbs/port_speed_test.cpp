#include "verbs/port_speed.hpp"

#include <gtest/gtest.h>

namespace verbscope {
namespace {

TEST(PortSpeed, IsLanesTimesTheRateOfALane) {
  ibv_port_attr port{};
  port.active_width = 2;   // 4 lanes
  port.active_speed = 32;  // EDR: 25 Gb/s
  EXPECT_DOUBLE_EQ(port_rate(port).value, 100e9 / 8);
  port.active_speed = 3;  // no such code
  EXPECT_EQ(port_rate(port).value, 0);
}

TEST(PortSpeed, SetsTheCodesOfTheNearestRate) {
  ibv_port_attr port{};
  for (const double gbit : {25.0, 40.0, 54.54, 100.0, 200.0}) {
    set_port_rate(port, {gbit * 1e9 / 8});
    EXPECT_NEAR(port_rate(port).value * 8e-9, gbit, 0.1) << gbit;
  }
}

}  // namespace
}  // namespace verbscope
