// Addresses of simulated nodes. Subnets are per port, so that the LID of a node is the same on each.
#pragma once

#include <infiniband/verbs.h>

#include <bit>
#include <cstdint>

namespace verbscope::sim {

inline constexpr std::uint64_t kGidPrefix = 0xfe80'0000'0000'0000;  // link-local

inline std::uint64_t big_endian(std::uint64_t value) {
  return std::endian::native == std::endian::little ? __builtin_bswap64(value) : value;
}

constexpr std::uint16_t lid_of(std::uint32_t node) {
  return static_cast<std::uint16_t>(node + 1);
}

// The interface id: the node's number from one, then the port's, counted from one.
inline ibv_gid gid_of(std::uint32_t node, std::uint8_t port) {
  ibv_gid gid{};
  gid.global.subnet_prefix = big_endian(kGidPrefix);
  gid.global.interface_id = big_endian(std::uint64_t{node + 1} << 8 | port);
  return gid;
}

}  // namespace verbscope::sim
