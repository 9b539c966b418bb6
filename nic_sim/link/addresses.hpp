// Addresses of simulated nodes. Each port has its own subnet, in which a node has the same LID. On RoCE v2 a node has
// the IPv4 address 10.PORT.x.y, where x.y is its number from one.
#pragma once

#include <infiniband/verbs.h>

#include <bit>
#include <cstdint>
#include <optional>

#include "wire/packet.hpp"

namespace verbscope::sim {

inline constexpr std::uint64_t kGidPrefix = 0xfe80'0000'0000'0000;   // link-local
inline constexpr std::uint64_t kIpv4Mapped = 0x0000'ffff'0a00'0000;  // ::ffff:10.0.0.0

inline std::uint64_t big_endian(std::uint64_t value) {
  return std::endian::native == std::endian::little ? __builtin_bswap64(value) : value;
}

constexpr std::uint16_t lid_of(std::uint32_t node) {
  return static_cast<std::uint16_t>(node + 1);
}

// On InfiniBand the interface id consists of the node's number from one and the port's number from one.
inline ibv_gid gid_of(LinkType link, std::uint32_t node, std::uint8_t port) {
  ibv_gid gid{};
  if (facts(link).ethernet) {
    gid.global.interface_id = big_endian(kIpv4Mapped | std::uint64_t{port} << 16 | (node + 1));
  } else {
    gid.global.subnet_prefix = big_endian(kGidPrefix);
    gid.global.interface_id = big_endian(std::uint64_t{node + 1} << 8 | port);
  }
  return gid;
}

// The node of a GID; none if it is no node's.
inline std::optional<std::uint32_t> node_of(LinkType link, const ibv_gid& gid) {
  const std::uint64_t id = big_endian(gid.global.interface_id);
  const std::uint64_t number = facts(link).ethernet ? id & 0xffff : id >> 8;
  if (number == 0 || (facts(link).ethernet && id >> 24 != kIpv4Mapped >> 24)) return std::nullopt;
  return static_cast<std::uint32_t>(number - 1);
}

// The priority of packets on a path: DSCP / 8 if there is a DSCP, the six highest bits of the traffic class, else the
// service level, which RoCE carries as the priority of a VLAN. The simulated InfiniBand switches have one virtual lane.
inline std::uint8_t priority_of(LinkType link, const ibv_ah_attr& path) {
  if (!facts(link).ethernet) return 0;
  const bool by_class = path.is_global != 0 && path.grh.traffic_class >> 2 != 0;
  return static_cast<std::uint8_t>(by_class ? path.grh.traffic_class >> 5 : path.sl & 7);
}

}  // namespace verbscope::sim
