// Speeds of ports as libibverbs encodes them: lanes and speed of a lane (InfiniBand specification, PortInfo; Ethernet
// uses the same codes).
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cmath>
#include <cstdint>

#include "common/units.hpp"

namespace verbscope {

struct LaneCode {
  std::uint8_t code;
  double value;
};
inline constexpr std::array<LaneCode, 5> kLaneCounts = {{{1, 1}, {2, 4}, {4, 8}, {8, 12}, {16, 2}}};
// Data rate of a lane in Gb/s, without line encoding: SDR, DDR, QDR, FDR-10, FDR, EDR, HDR, NDR.
inline constexpr std::array<LaneCode, 8> kLaneRates = {
    {{1, 2}, {2, 4}, {4, 8}, {8, 10}, {16, 13.64}, {32, 25}, {64, 50}, {128, 100}}};

// The data rate of a port; 0 if its codes are not known.
inline BytesPerSecond port_rate(const ibv_port_attr& port) {
  const auto value_of = [](const auto& table, std::uint8_t code) {
    for (const LaneCode& row : table) {
      if (row.code == code) return row.value;
    }
    return 0.0;
  };
  return {value_of(kLaneCounts, port.active_width) * value_of(kLaneRates, port.active_speed) * 1e9 / 8};
}

// Sets the codes whose rate is nearest to `rate`.
inline void set_port_rate(ibv_port_attr& port, BytesPerSecond rate) {
  double nearest = 0;
  for (const LaneCode& lanes : kLaneCounts) {
    for (const LaneCode& speed : kLaneRates) {
      const double bytes = lanes.value * speed.value * 1e9 / 8;
      if (nearest > 0 && std::abs(bytes - rate.value) >= std::abs(nearest - rate.value)) continue;
      nearest = bytes;
      port.active_width = lanes.code;
      port.active_speed = speed.code;
    }
  }
}

}  // namespace verbscope
