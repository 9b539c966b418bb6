// Addresses of simulated nodes. Each port has its own subnet, in which a node has the same LID. On RoCE a node has the
// IPv4 address 10.PORT.x.y, where x.y is its number from one, and a link-local IPv6 address.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "nic_sim/link/packet.hpp"
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

// The headers of a path by the index of its source GID, as on Linux: the table of a RoCE port begins with the
// link-local address, and has each address for RoCE v1 and for v2.
inline constexpr std::array kRoceGids = {GlobalHeader::grh, GlobalHeader::ipv6, GlobalHeader::grh_ipv4,
                                         GlobalHeader::ipv4};
inline constexpr std::array kInfinibandGids = {GlobalHeader::grh};

constexpr std::uint32_t gid_table_length(LinkType link) {
  return static_cast<std::uint32_t>(facts(link).ethernet ? kRoceGids.size() : kInfinibandGids.size());
}
// None: the port has no GID of this index.
constexpr GlobalHeader header_of_gid(LinkType link, std::uint32_t index) {
  if (index >= gid_table_length(link)) return GlobalHeader::none;
  return facts(link).ethernet ? kRoceGids[index] : kInfinibandGids[index];
}

constexpr bool has_ipv4_address(GlobalHeader header) {
  return header == GlobalHeader::ipv4 || header == GlobalHeader::grh_ipv4;
}

// The GID of a node in packets with this header. The interface id of a link-local one consists of the node's number
// from one and the port's number from one.
inline ibv_gid gid_of(GlobalHeader header, std::uint32_t node, std::uint8_t port) {
  ibv_gid gid{};
  if (has_ipv4_address(header)) {
    gid.global.interface_id = big_endian(kIpv4Mapped | std::uint64_t{port} << 16 | (node + 1));
  } else {
    gid.global.subnet_prefix = big_endian(kGidPrefix);
    gid.global.interface_id = big_endian(std::uint64_t{node + 1} << 8 | port);
  }
  return gid;
}

// The node of a destination GID; none if it is no node's, or not of the family of the source GID.
inline std::optional<std::uint32_t> node_of(GlobalHeader header, const ibv_gid& gid) {
  const bool ipv4 = has_ipv4_address(header);
  const std::uint64_t id = big_endian(gid.global.interface_id);
  const std::uint64_t number = ipv4 ? id & 0xffff : id >> 8;
  const std::uint64_t prefix = ipv4 ? 0 : big_endian(kGidPrefix);
  if (number == 0 || gid.global.subnet_prefix != prefix || (ipv4 && id >> 24 != kIpv4Mapped >> 24)) return std::nullopt;
  return static_cast<std::uint32_t>(number - 1);
}

// True for an IPv6 multicast address and an IPv4-mapped one, as the kernel decides (rdma_is_multicast_addr).
inline bool is_multicast_gid(const ibv_gid& gid) {
  const std::uint64_t id = big_endian(gid.global.interface_id);
  return gid.raw[0] == 0xff || (gid.global.subnet_prefix == 0 && id >> 28 == 0x0000'ffff'eu);
}

// The group of a multicast GID; none if InfiniBand has no such multicast LID (volume 1, section 4.1.3). RoCE ignores
// the LID (annex A16).
inline std::optional<MulticastGroup> group_of(LinkType link, const ibv_gid& gid, std::uint16_t lid) {
  constexpr std::uint16_t kFirst = 0xc000, kLast = 0xfffe;
  if (!is_multicast_gid(gid)) return std::nullopt;
  if (!facts(link).ethernet && (lid < kFirst || lid > kLast)) return std::nullopt;
  return MulticastGroup{.subnet_prefix = gid.global.subnet_prefix,
                        .interface_id = gid.global.interface_id,
                        .lid = facts(link).ethernet ? 0u : lid};
}

// The priority of packets on a path: DSCP / 8 if there is a DSCP, the six highest bits of the traffic class, else the
// service level, which RoCE carries as the priority of a VLAN. The simulated InfiniBand switches have one virtual lane.
inline std::uint8_t priority_of(LinkType link, const ibv_ah_attr& path) {
  if (!facts(link).ethernet) return 0;
  const bool by_class = path.is_global != 0 && path.grh.traffic_class >> 2 != 0;
  return static_cast<std::uint8_t>(by_class ? path.grh.traffic_class >> 5 : path.sl & 7);
}

}  // namespace verbscope::sim
