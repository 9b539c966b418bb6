// Addresses of the connection manager and the nodes that they name. Node N of a cluster has address_of_node(N), the
// same as an IPv4-mapped IPv6 address, and the GID of its port (AF_IB).
#pragma once

#include <infiniband/ib.h>
#include <infiniband/verbs.h>
#include <sys/socket.h>

#include <cstdint>
#include <optional>
#include <span>

#include "nic_sim/link/addresses.hpp"
#include "simulate/channel/addresses.hpp"

namespace verbscope::simulate {

// A socket address of one of the families AF_INET, AF_INET6 and AF_IB; none if the family is 0.
using CmAddress = sockaddr_storage;

// Bytes of an address of this family; 0: the connection manager does not know it.
std::size_t size_of_family(sa_family_t family);
// The address in these bytes; none if its family is unknown or it is longer than they are.
std::optional<CmAddress> read_address(std::span<const std::byte> bytes);

// The port in host order. That of AF_IB is the lowest 16 bits of the service number.
std::uint16_t port_of(const CmAddress& address);
void set_port(CmAddress& address, std::uint16_t port);

// Ports for addresses without one: net.ipv4.ip_local_port_range of Linux.
inline constexpr std::uint16_t kFirstPort = 32768;
inline constexpr std::uint16_t kLastPort = 60999;

// 0.0.0.0, :: or a zero GID.
bool is_any(const CmAddress& address);
// An address of a multicast group.
bool is_multicast(const CmAddress& address);

// What names the nodes of a cluster.
struct CmNetwork {
  LinkType link;
  std::uint32_t nodes;

  // The index of the source GID with which connections are made. On RoCE it is the IPv4 address for RoCE v2, which
  // Linux prefers for connections to IP addresses.
  std::uint8_t gid_index() const;
  ibv_gid gid(std::uint32_t node) const;
  // The node of an address, as `own_node` sees it; none if there is no such node.
  std::optional<std::uint32_t> node_of(const CmAddress& address, std::uint32_t own_node) const;
  CmAddress address_of(sa_family_t family, std::uint32_t node, std::uint16_t port) const;
  // The GID of a multicast group. IP addresses are mapped as Linux does: on InfiniBand by RFC 4391, section 4, where
  // groups of RDMA_PS_UDP have a signature of their own (cma_set_mgid); on RoCE the address itself (cma_iboe_set_mgid).
  ibv_gid group_gid(const CmAddress& address, std::uint16_t port_space) const;
};

}  // namespace verbscope::simulate
