#include "simulate/server/connection_addresses.hpp"

#include <endian.h>
#include <netinet/in.h>
#include <rdma/rdma_cma.h>

#include <algorithm>
#include <cstring>

namespace verbscope::simulate {
namespace {

constexpr std::uint8_t kConnectionPort = 1;  // of the device; nodes have IP addresses on their first port

template <class Family>
Family& as(CmAddress& address) {
  return reinterpret_cast<Family&>(address);
}
template <class Family>
const Family& as(const CmAddress& address) {
  return reinterpret_cast<const Family&>(address);
}

ibv_gid gid_in(const CmAddress& address) {
  ibv_gid gid{};
  std::memcpy(gid.raw, as<sockaddr_ib>(address).sib_addr.sib_raw, sizeof gid.raw);
  return gid;
}

// The IPv4 address, in host order, that an IPv6 address maps; none if it maps none.
std::optional<std::uint32_t> mapped(const in6_addr& address) {
  if (!IN6_IS_ADDR_V4MAPPED(&address)) return std::nullopt;
  return ntohl(address.s6_addr32[3]);
}

}  // namespace

std::size_t size_of_family(sa_family_t family) {
  switch (family) {
    case AF_INET:
      return sizeof(sockaddr_in);
    case AF_INET6:
      return sizeof(sockaddr_in6);
    case AF_IB:
      return sizeof(sockaddr_ib);
    default:
      return 0;
  }
}

std::optional<CmAddress> read_address(std::span<const std::byte> bytes) {
  CmAddress address{};
  std::memcpy(&address, bytes.data(), std::min(bytes.size(), sizeof address));
  const std::size_t size = size_of_family(address.ss_family);
  if (size == 0 || size > bytes.size()) return std::nullopt;
  return address;
}

std::uint16_t port_of(const CmAddress& address) {
  switch (address.ss_family) {
    case AF_INET:
      return ntohs(as<sockaddr_in>(address).sin_port);
    case AF_INET6:
      return ntohs(as<sockaddr_in6>(address).sin6_port);
    case AF_IB:
      return static_cast<std::uint16_t>(be64toh(as<sockaddr_ib>(address).sib_sid));
    default:
      return 0;
  }
}

void set_port(CmAddress& address, std::uint16_t port) {
  switch (address.ss_family) {
    case AF_INET:
      as<sockaddr_in>(address).sin_port = htons(port);
      break;
    case AF_INET6:
      as<sockaddr_in6>(address).sin6_port = htons(port);
      break;
    case AF_IB: {
      sockaddr_ib& ib = as<sockaddr_ib>(address);
      ib.sib_sid = htobe64((be64toh(ib.sib_sid) & ~std::uint64_t{0xffff}) | port);
      ib.sib_sid_mask = ~__be64{0};
      break;
    }
    default:
      break;
  }
}

bool is_any(const CmAddress& address) {
  switch (address.ss_family) {
    case AF_INET:
      return as<sockaddr_in>(address).sin_addr.s_addr == INADDR_ANY;
    case AF_INET6:
      return IN6_IS_ADDR_UNSPECIFIED(&as<sockaddr_in6>(address).sin6_addr) ||
             mapped(as<sockaddr_in6>(address).sin6_addr) == INADDR_ANY;
    default:
      return ib_addr_any(&as<sockaddr_ib>(address).sib_addr) != 0;
  }
}

bool is_multicast(const CmAddress& address) {
  switch (address.ss_family) {
    case AF_INET:
      return IN_MULTICAST(ntohl(as<sockaddr_in>(address).sin_addr.s_addr));
    case AF_INET6: {
      const in6_addr& ip = as<sockaddr_in6>(address).sin6_addr;
      return IN6_IS_ADDR_MULTICAST(&ip) || IN_MULTICAST(mapped(ip).value_or(0));
    }
    default:
      return gid_in(address).raw[0] == 0xff;
  }
}

std::uint8_t CmNetwork::gid_index() const {
  const auto found = std::ranges::find(sim::kRoceGids, sim::GlobalHeader::ipv4);
  return facts(link).ethernet ? static_cast<std::uint8_t>(found - sim::kRoceGids.begin()) : std::uint8_t{0};
}

ibv_gid CmNetwork::gid(std::uint32_t node) const {
  return sim::gid_of(sim::header_of_gid(link, gid_index()), node, kConnectionPort);
}

std::optional<std::uint32_t> CmNetwork::node_of(const CmAddress& address, std::uint32_t own_node) const {
  if (is_any(address)) return own_node;
  std::optional<std::uint32_t> node;
  const auto from_ipv4 = [own_node](std::uint32_t ip) { return is_own_node(ip) ? own_node : ip - address_of_node(0); };
  if (address.ss_family == AF_INET) {
    node = from_ipv4(ntohl(as<sockaddr_in>(address).sin_addr.s_addr));
  } else if (address.ss_family == AF_INET6) {
    const in6_addr& ip = as<sockaddr_in6>(address).sin6_addr;
    if (IN6_IS_ADDR_LOOPBACK(&ip)) return own_node;
    if (const auto ipv4 = mapped(ip)) node = from_ipv4(*ipv4);
  } else {
    if (ib_addr_loopback(&as<sockaddr_ib>(address).sib_addr) != 0) return own_node;
    node = sim::node_of(sim::header_of_gid(link, gid_index()), gid_in(address));
  }
  if (!node || *node >= nodes) return std::nullopt;
  return node;
}

CmAddress CmNetwork::address_of(sa_family_t family, std::uint32_t node, std::uint16_t port) const {
  CmAddress address{};
  address.ss_family = family;
  if (family == AF_INET) {
    as<sockaddr_in>(address).sin_addr.s_addr = htonl(address_of_node(node));
  } else if (family == AF_INET6) {
    in6_addr& ip = as<sockaddr_in6>(address).sin6_addr;
    ip.s6_addr16[5] = 0xffff;
    ip.s6_addr32[3] = htonl(address_of_node(node));
  } else {
    const ibv_gid own = gid(node);
    as<sockaddr_ib>(address).sib_pkey = 0xffff;
    std::memcpy(as<sockaddr_ib>(address).sib_addr.sib_raw, own.raw, sizeof own.raw);
  }
  set_port(address, port);
  return address;
}

ibv_gid CmNetwork::group_gid(const CmAddress& address, std::uint16_t port_space) const {
  if (address.ss_family == AF_IB) return gid_in(address);
  ibv_gid gid{};
  const bool ipv4 = address.ss_family == AF_INET;
  const in_addr& ip4 = as<sockaddr_in>(address).sin_addr;
  const in6_addr& ip6 = as<sockaddr_in6>(address).sin6_addr;
  const bool assigned = !ipv4 && (ntohl(ip6.s6_addr32[0]) & 0xfff0ffff) == 0xff10a01b;  // by the subnet administrator
  if (!ipv4 && (assigned || facts(link).ethernet)) {
    std::memcpy(gid.raw, &ip6, sizeof ip6);
    return gid;
  }
  if (ipv4) std::memcpy(gid.raw + 12, &ip4, sizeof ip4);
  if (facts(link).ethernet) {
    gid.raw[10] = gid.raw[11] = 0xff;
    return gid;
  }
  gid.raw[0] = 0xff;
  gid.raw[1] = 0x12;  // transient, link-local as the broadcast group of IPoIB
  gid.raw[2] = ipv4 ? 0x40 : 0x60;
  gid.raw[3] = port_space == RDMA_PS_UDP ? 0x01 : 0x1b;
  gid.raw[4] = gid.raw[5] = 0xff;  // P_Key
  if (ipv4) {
    gid.raw[12] &= 0x0f;
  } else {
    std::memcpy(gid.raw + 6, ip6.s6_addr + 6, 10);
  }
  return gid;
}

}  // namespace verbscope::simulate
