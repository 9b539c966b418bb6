#include "simulate/preload/addresses.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <cstring>
#include <optional>

#include "simulate/preload/real.hpp"
#include "simulate/preload/session.hpp"

namespace verbscope::simulate {
namespace {

constexpr std::uint32_t kLoopbackNet = 127u << 24;
constexpr std::uint32_t kNetMask = 255u << 24;
// From a node's address to that of its sockets for IPv6 alone, which the simulator leaves free.
constexpr std::uint32_t kIpv6Only = 127u << 16;

std::uint32_t own_loopback() {
  return loopback() + static_cast<std::uint32_t>(node());
}

// Where the kernel has the IPv4 address `address` of a node; none if it is no node's.
std::optional<std::uint32_t> of_node(std::uint32_t address) {
  if (address == INADDR_ANY || (address & kNetMask) == kLoopbackNet) return own_loopback();
  const std::uint32_t number = address - address_of_node(0);
  if (number < nodes()) return loopback() + number;
  return std::nullopt;
}

std::uint32_t ipv4_in(const in6_addr& address) {
  return ntohl(address.s6_addr32[3]);
}

in6_addr mapped(std::uint32_t ipv4) {
  in6_addr address{};
  address.s6_addr16[5] = 0xffff;
  address.s6_addr32[3] = htonl(ipv4);
  return address;
}

bool is_for_ipv6_only(int socket) {
  int only = 0;
  socklen_t size = sizeof only;
  return getsockopt(socket, IPPROTO_IPV6, IPV6_V6ONLY, &only, &size) == 0 && only != 0;
}

}  // namespace

KernelAddress to_kernel(const sockaddr* address, socklen_t bytes) {
  KernelAddress result{.storage = {}, .bytes = bytes, .of_node = false};
  if (address == nullptr || bytes > sizeof result.storage) return result;
  std::memcpy(&result.storage, address, bytes);
  if (address->sa_family == AF_INET && bytes >= sizeof(sockaddr_in)) {
    auto& ipv4 = reinterpret_cast<sockaddr_in&>(result.storage);
    const auto found = of_node(ntohl(ipv4.sin_addr.s_addr));
    if (found) ipv4.sin_addr.s_addr = htonl(*found);
    result.of_node = found.has_value();
  } else if (address->sa_family == AF_INET6 && bytes >= sizeof(sockaddr_in6)) {
    in6_addr& ipv6 = reinterpret_cast<sockaddr_in6&>(result.storage).sin6_addr;
    const bool own = IN6_IS_ADDR_UNSPECIFIED(&ipv6) || IN6_IS_ADDR_LOOPBACK(&ipv6);
    const auto found = own                           ? std::optional(own_loopback())
                       : IN6_IS_ADDR_V4MAPPED(&ipv6) ? of_node(ipv4_in(ipv6))
                                                     : std::nullopt;
    if (found) ipv6 = mapped(*found);
    result.of_node = found.has_value();
  }
  return result;
}

KernelAddress to_bind(int socket, const sockaddr* address, socklen_t bytes) {
  KernelAddress result = to_kernel(address, bytes);
  if (!result.of_node || address->sa_family != AF_INET6 || !is_for_ipv6_only(socket)) return result;
  const int any = 0;
  setsockopt(socket, IPPROTO_IPV6, IPV6_V6ONLY, &any, sizeof any);
  in6_addr& ipv6 = reinterpret_cast<sockaddr_in6&>(result.storage).sin6_addr;
  ipv6 = mapped(ipv4_in(ipv6) + kIpv6Only);
  return result;
}

void bind_to_node(int socket) {
  sockaddr_storage name{};
  socklen_t bytes = sizeof name;
  if (REAL(getsockname)(socket, reinterpret_cast<sockaddr*>(&name), &bytes) != 0) return;
  // The port is at the same place for IPv4 and IPv6.
  const bool ip = name.ss_family == AF_INET || name.ss_family == AF_INET6;
  if (!ip || reinterpret_cast<const sockaddr_in&>(name).sin_port != 0) return;
  const int later = 1;  // the kernel chooses the port when it knows the peer
  setsockopt(socket, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &later, sizeof later);
  const int any = 0;
  if (name.ss_family == AF_INET6) setsockopt(socket, IPPROTO_IPV6, IPV6_V6ONLY, &any, sizeof any);
  const KernelAddress own = to_kernel(reinterpret_cast<const sockaddr*>(&name), bytes);
  REAL(bind)(socket, own.get(), own.bytes);
}

void to_program(sockaddr* address, socklen_t bytes) {
  const auto known = [](std::uint32_t ipv4) -> std::optional<std::uint32_t> {
    const std::uint32_t number = ipv4 - loopback();
    if (number < nodes()) return address_of_node(number);
    return std::nullopt;
  };
  if (address == nullptr) return;
  if (address->sa_family == AF_INET && bytes >= sizeof(sockaddr_in)) {
    in_addr& ipv4 = reinterpret_cast<sockaddr_in*>(address)->sin_addr;
    if (const auto found = known(ntohl(ipv4.s_addr))) ipv4.s_addr = htonl(*found);
  } else if (address->sa_family == AF_INET6 && bytes >= sizeof(sockaddr_in6)) {
    in6_addr& ipv6 = reinterpret_cast<sockaddr_in6*>(address)->sin6_addr;
    if (!IN6_IS_ADDR_V4MAPPED(&ipv6)) return;
    if (const auto found = known(ipv4_in(ipv6)))
      ipv6 = mapped(*found);
    else if (known(ipv4_in(ipv6) - kIpv6Only))
      ipv6 = in6addr_any;
  }
}

}  // namespace verbscope::simulate
